// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heap::diff() between readers that are open.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <farheap/heap_facts.hpp>
#include <string_view>

#include "api/heap_reader.hpp"

namespace farheap::api {

// Two versions by their names; none: the newest. Of one reader: what both share is not read. Of two: all pages are.
[[nodiscard]] Result<HeapDifference> difference_between(HeapReader& a, std::string_view version_a, HeapReader& b,
                                                        std::string_view version_b);

}  // namespace farheap::api
