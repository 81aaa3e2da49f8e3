// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <thread>
#include <vector>

namespace farheap::bench {

// Runs work(0) here and work(1) ... work(threads - 1) in threads of their own; returns when all are done.
// Thread-safety: what `work` does at the same time is the caller's business.
template <typename Work>
void in_threads(unsigned threads, Work work) {
  std::vector<std::jthread> others;
  for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back([&work, thread] { work(thread); });
  work(0);
}

}  // namespace farheap::bench
