// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A figure that is the most of what was seen.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>

namespace farheap::base {

template <class Figure>
void raise_to(std::atomic<Figure>& most, Figure value) {
  Figure seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace farheap::base
