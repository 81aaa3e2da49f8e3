// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the mapping calls have in common: whether a call is about the segment.
#pragma once

#include <errno.h>
#include <stddef.h>

#include "base/units.hpp"
#include "preload/runtime.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

namespace farheap::preload {

// The segment, if this call comes from the program and the runtime is there.
inline segment::PagedSegment* program_segment() {
  if (base::t_inside_runtime) return nullptr;
  Runtime* made = g_runtime.load(std::memory_order_acquire);
  return made != nullptr ? made->segment.get() : nullptr;
}

// The segment, if it holds all of [at, at + bytes).
inline segment::PagedSegment* segment_of(const void* at, size_t bytes) {
  segment::PagedSegment* segment = program_segment();
  if (segment == nullptr || !segment->contains(at)) return nullptr;
  return bytes <= segment->capacity_bytes() - static_cast<size_t>(static_cast<const std::byte*>(at) - segment->base())
             ? segment
             : nullptr;
}

inline bool is_page(const void* at) { return reinterpret_cast<uintptr_t>(at) % base::kPageBytes == 0; }

// Rounded up to pages, it would be no number.
inline bool wraps(size_t bytes) { return bytes > SIZE_MAX - base::kPageBytes; }

inline int fails_with(int why) {
  errno = why;
  return -1;
}

}  // namespace farheap::preload
