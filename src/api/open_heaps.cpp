// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/open_heaps.hpp"

#include <algorithm>
#include <new>

#include "api/runtime_calls.hpp"
#include "base/mutex.hpp"
#include "segment/at_the_tables.hpp"

namespace farheap::api {

OpenHeaps& OpenHeaps::all() {
  static OpenHeaps& only = *new OpenHeaps;
  return only;
}

void OpenHeaps::add(segment::KeptSegment& heap) {
  forget_parents();
  {
    const segment::AtTheTables working;
    const base::LockGuard lock(mutex_);
    heaps_.push_back(&heap);
  }
  g_heap_hint.store([](pager::HintKind kind, const void* at, std::size_t bytes) { return all().hint(kind, at, bytes); },
                    std::memory_order_release);
  g_heap_order.store(
      [](std::span<const farheap_step> steps, std::size_t round) { return all().expect_order(steps, round); },
      std::memory_order_release);
}

void OpenHeaps::remove(segment::KeptSegment& heap) {
  const segment::AtTheTables working;
  const base::LockGuard lock(mutex_);
  std::erase(heaps_, &heap);
}

bool OpenHeaps::hint(pager::HintKind kind, const void* at, std::size_t bytes) {
  if (mark_.is_gone()) return false;
  const segment::AtTheTables working;
  const base::SharedGuard lock(mutex_);
  return std::ranges::any_of(heaps_, [&](segment::KeptSegment* heap) { return heap->hint(kind, at, bytes); });
}

bool OpenHeaps::expect_order(std::span<const farheap_step> steps, std::size_t round) {
  if (mark_.is_gone()) return false;
  const segment::AtTheTables working;
  const base::SharedGuard lock(mutex_);
  bool is_heard = false;
  for (segment::KeptSegment* const heap : heaps_) {
    is_heard |= heap->expect_order(steps, round);
    if (is_heard && !steps.empty()) break;
  }
  return is_heard;
}

// Another thread of the parent may have been at the list.
void OpenHeaps::forget_parents() {
  if (!mark_.set_if_gone()) return;
  new (&mutex_) base::SharedMutex;
  new (&heaps_) std::vector<segment::KeptSegment*>;
}

}  // namespace farheap::api
