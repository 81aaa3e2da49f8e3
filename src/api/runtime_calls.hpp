// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the public calls for hints ask first, and what they ask. A program may link them alone: then no heaps come with
// them, and there is nobody to ask.
//
// Thread-safety: any thread; in signal handlers, too.
#pragma once

#include <farheap/farheap.h>

#include <atomic>
#include <cstddef>
#include <span>

#include "pager/hint.hpp"

namespace farheap::api {

// False: the first byte is in no heap that is open in this process.
using HeapHint = bool (*)(pager::HintKind kind, const void* at, std::size_t bytes);
// The same of the first step; without steps: no heap is open.
using HeapOrder = bool (*)(std::span<const farheap_step> steps, std::size_t round);
// nullptr until a heap is opened; from then on the same.
extern std::atomic<HeapHint> g_heap_hint;
extern std::atomic<HeapOrder> g_heap_order;

}  // namespace farheap::api
