// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface of farheap.h, where there is a runtime. Loaded first, these take the place of libfarheap's. And
// what loop_hint.h and residency.h say, which only the runtime has.
#include "farheap/farheap.h"

#include <type_traits>

#include "base/flush_hook.hpp"
#include "base/format_into.hpp"
#include "farheap/loop_hint.h"
#include "farheap/residency.h"
#include "preload/program_segment.hpp"
#include "preload/runtime.hpp"

using namespace farheap;

namespace {

// Below it a hint costs more than the faults that it saves.
constexpr std::size_t kShortest = 64 * base::kKiB;

}  // namespace

extern "C" __attribute__((visibility("default"))) int farheap_hint(const void* address, size_t bytes,
                                                                   farheap_hint_kind kind) {
  if (kind < FARHEAP_WILL_NEED || kind > FARHEAP_KEEP) return -1;
  preload::Runtime* made = preload::g_runtime.load(std::memory_order_acquire);
  if (made == nullptr) return 1;
  return made->segment->hint(static_cast<pager::HintKind>(kind), address, bytes) ? 0 : 1;
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
  if (bytes < kShortest) return;
  segment::PagedSegment* segment = preload::segment_of(begin, bytes);
  if (segment == nullptr || !segment->is_paging()) return;
  // Sparser than pages, a sweep is as good as random: what lies between is not wanted. No limit of the type's: -stride
  // may not be one.
  constexpr auto kDense = static_cast<ptrdiff_t>(base::kPageBytes);
  if (stride > kDense || stride < -kDense) return;
  segment->loop_begins(begin, bytes, (flags & FARHEAP_LOOP_BACKWARD) != 0 || stride < 0);
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
