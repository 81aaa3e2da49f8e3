// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface of farheap.h and loop_hint.h, where there is a runtime: for programs without libfarheap, whose own
// functions of these names come first and hand on what is not about a heap of theirs. And what residency.h says, which
// only the runtime has.
#include "farheap/farheap.h"

#include <type_traits>

#include "base/flush_hook.hpp"
#include "base/format_into.hpp"
#include "farheap/loop_hint.h"
#include "farheap/residency.h"
#include "pager/public_hints.hpp"
#include "preload/program_segment.hpp"
#include "preload/runtime.hpp"

using namespace farheap;

extern "C" __attribute__((visibility("default"))) int farheap_hint(const void* address, size_t bytes,
                                                                   farheap_hint_kind kind) {
  const auto said = pager::hint_kind(kind);
  if (!said) return -1;
  preload::Runtime* made = preload::g_runtime.load(std::memory_order_acquire);
  return made != nullptr && made->segment->hint(*said, address, bytes) ? 0 : 1;
}

extern "C" __attribute__((visibility("default"))) int farheap_expect_order(const farheap_step* steps, size_t count,
                                                                           size_t round) {
  if (!pager::is_order(steps, count, round)) return -1;
  preload::Runtime* made = preload::g_runtime.load(std::memory_order_acquire);
  return made != nullptr && made->segment->expect_order({steps, count}, round) ? 0 : 1;
}

extern "C" __attribute__((visibility("default"))) int farheap_active(void) {
  preload::Runtime* made = preload::g_runtime.load(std::memory_order_acquire);
  return made != nullptr && made->segment->is_paging() ? 1 : 0;
}

// For the runtime of translated programs (base/flush_hook.hpp).
// NOLINTNEXTLINE(bugprone-reserved-identifier): a name that no program has
FARHEAP_EXPORT bool __farheap_flush_pages(char* why, size_t why_bytes) {
  preload::Runtime* const made = preload::g_runtime.load(std::memory_order_acquire);
  if (made == nullptr || base::t_inside_runtime) return true;  // nothing was written to it
  const base::InsideRuntime inside;
  const Status flushed = made->segment->flush();
  if (flushed) return true;
  why[base::format_into({why, why_bytes - 1}, "{}", flushed.error().message()).size()] = '\0';
  return false;
}
static_assert(std::is_same_v<decltype(__farheap_flush_pages), base::FlushHook>);

FARHEAP_EXPORT void __farheap_loop(const void* begin, size_t bytes, ptrdiff_t stride, unsigned flags) {
  const auto said = pager::loop_hint_kind(bytes, stride, flags);
  if (!said) return;
  if (segment::PagedSegment* segment = preload::segment_of(begin, bytes)) segment->hint(*said, begin, bytes);
}

FARHEAP_EXPORT void __farheap_residency(farheap_residency* view) {
  if (preload::Runtime* made = preload::runtime()) made->segment->guards().add(*view);
}

FARHEAP_EXPORT void __farheap_residency_gone(farheap_residency* view) {
  if (preload::Runtime* made = preload::runtime()) made->segment->guards().remove(*view);
}

FARHEAP_EXPORT void __farheap_fetch(const void* address, unsigned write) {
  if (preload::Runtime* made = preload::g_runtime.load(std::memory_order_acquire)) {
    made->segment->guards().fetch(address, write != 0);
  }
}
