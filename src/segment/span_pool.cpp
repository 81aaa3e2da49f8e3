// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/span_pool.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "os/drop_memory.hpp"

namespace farheap::segment {

Result<SpanPool> SpanPool::make(std::size_t capacity_bytes) {
  const std::size_t spans = capacity_bytes / kSpanBytes + 2;  // there is no span 0
  SpanPool pool;
  auto memory = os::Mapping::reserve(spans * kSpanBytes, os::Access::kReadWrite);
  if (!memory) return fail(std::move(memory.error()));
  auto table = os::ReservedArray<Span>::make(spans);
  if (!table) return fail(std::move(table.error()));
  auto empty = os::ReservedArray<SpanNumber>::make(spans);
  if (!empty) return fail(std::move(empty.error()));
  auto bare = os::ReservedArray<SpanNumber>::make(spans);
  if (!bare) return fail(std::move(bare.error()));
  syscall(SYS_madvise, memory->data(), memory->size(), MADV_NOHUGEPAGE);  // a span is given back by itself
  pool.memory_ = std::move(*memory);
  pool.spans_ = std::move(*table);
  pool.empty_ = std::move(*empty);
  pool.bare_ = std::move(*bare);
  pool.capacity_ = static_cast<SpanNumber>(spans);
  return pool;
}

void SpanPool::list(SpanNumber number) {
  Span& span = spans_[number];
  SpanNumber& first = with_room_[span.steps];
  span.before = 0;
  span.after = first;
  if (first != 0) spans_[first].before = number;
  first = number;
}

void SpanPool::unlist(SpanNumber number) {
  Span& span = spans_[number];
  (span.before != 0 ? spans_[span.before].after : with_room_[span.steps]) = span.after;
  if (span.after != 0) spans_[span.after].before = span.before;
  span.before = span.after = 0;
}

SpanPool::SpanNumber SpanPool::new_span(std::size_t steps) {
  SpanNumber number = 0;
  if (empty_count_ != 0) {
    number = empty_[--empty_count_];
  } else if (bare_count_ != 0) {
    number = bare_[--bare_count_];
  } else if (end_ < capacity_) {
    number = end_++;
  } else {
    return 0;
  }
  spans_[number] = {};
  spans_[number].steps = static_cast<std::uint16_t>(steps);
  ++used_;
  list(number);
  return number;
}

SpanPool::Place SpanPool::take_in(SpanNumber number, Owner owner) {
  Span& span = spans_[number];
  Place place = 0;
  if (span.free_slot != 0) {
    place = place_of(number, span.free_slot - 1u);
    span.free_slot = static_cast<std::uint16_t>(header_at(place));
  } else {
    place = place_of(number, span.cut);
    span.cut = static_cast<std::uint16_t>(span.cut + span.steps);
  }
  ++span.taken;
  taken_steps_ += span.steps;
  header_at(place) = owner;
  if (span.taken == slots_in(span)) unlist(number);
  return place;
}

SpanPool::Place SpanPool::take(std::size_t bytes, Owner owner) {
  const std::size_t steps = (bytes + kHeader + kStep - 1) / kStep;
  SpanNumber number = with_room_[steps];
  if (number == 0) number = new_span(steps);
  return number == 0 ? 0 : take_in(number, owner);
}

void SpanPool::give_back(Place place) {
  const auto number = static_cast<SpanNumber>(place / kSteps);
  Span& span = spans_[number];
  if (span.taken == slots_in(span)) list(number);
  --span.taken;
  taken_steps_ -= span.steps;
  if (span.taken == 0) {
    unlist(number);
    span = {};
    --used_;
    empty_[empty_count_++] = number;
    return;
  }
  header_at(place) = span.free_slot;
  span.free_slot = static_cast<std::uint16_t>(place % kSteps + 1);
}

SpanPool::SpanNumber SpanPool::sparse_span() const {
  for (std::size_t steps = 1; steps < kSizes; ++steps) {
    SpanNumber sparsest = 0;
    std::size_t free = 0;
    int looks = 0;
    for (SpanNumber number = with_room_[steps]; number != 0 && looks < kLooks; number = spans_[number].after, ++looks) {
      const Span& span = spans_[number];
      free += slots_in(span) - span.taken;
      if (sparsest == 0 || span.taken < spans_[sparsest].taken) sparsest = number;
    }
    if (sparsest == 0) continue;
    const Span& span = spans_[sparsest];
    if (free - (slots_in(span) - span.taken) >= span.taken) return sparsest;
  }
  return 0;
}

void SpanPool::drop_empty(std::size_t but) {
  while (empty_count_ > but) {
    const SpanNumber number = empty_[--empty_count_];
    // Where it is locked and stays, it is as empty as before.
    (void)os::drop_though_locked(memory_.data() + std::size_t{number} * kSpanBytes, kSpanBytes);
    bare_[bare_count_++] = number;
  }
}

}  // namespace farheap::segment
