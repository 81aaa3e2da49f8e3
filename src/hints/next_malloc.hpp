// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The next library's malloc() and memalign(), with the hints told on behalf of `caller`.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>

#include "hints/hint_run.hpp"
#include "preload/caller.hpp"

namespace farheap::hints {

[[nodiscard]] void* allocate_for(const preload::Caller& caller, std::size_t bytes);
[[nodiscard]] void* allocate_aligned_for(const preload::Caller& caller, std::size_t alignment, std::size_t bytes);

}  // namespace farheap::hints
