// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which processor a thread runs on, and keeping to one.
//
// Thread-safety: any thread; allocates nothing.
#pragma once

#include <cstdint>

namespace farheap::os {

// Where a thread of this process ran last; -1 if that cannot be told. About 5 us.
[[nodiscard]] int processor_of_thread(std::uint32_t thread);

// The calling thread runs on this processor only; -1: on all that the process may use. A refusal changes nothing.
void keep_to_processor(int processor);

}  // namespace farheap::os
