// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory for many small pieces of a few sizes: what compressed pages are kept in. Spans of 32 KiB are cut into slots of
// one size each, a multiple of 128 bytes. Each slot knows its owner, so that what lies in spans that are mostly empty
// can be moved together.
//
// Thread-safety: none of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>

#include "os/mapping.hpp"

namespace farheap::segment {

class SpanPool {
 public:
  using Place = std::uint32_t;  // 0: none
  using Owner = std::uint32_t;  // not 0
  static constexpr std::size_t kSpanBytes = 32 << 10;
  static constexpr std::size_t kStep = 128;
  static constexpr std::size_t kSpare = 4;                            // empty spans that it keeps
  static constexpr std::size_t kHeader = sizeof(Owner);               // of a slot
  static constexpr std::size_t kMostBytes = 21 * kStep - kHeader;     // of a piece: two thirds of a page
  static constexpr std::size_t kMostCapacity = std::size_t{1} << 38;  // that a place can name

  // Reserves addresses; memory is taken as it is needed. kNoSpace if there are none. `capacity_bytes` is rounded up to
  // whole spans. Requires: no more than kMostCapacity.
  [[nodiscard]] static Result<SpanPool> make(std::size_t capacity_bytes);

  // Room for `bytes`. 0: the capacity is used up. Requires: 0 < bytes <= kMostBytes.
  [[nodiscard]] Place take(std::size_t bytes, Owner owner);
  void give_back(Place place);
  [[nodiscard]] std::byte* at(Place place) const { return slot_at(place) + kHeader; }

  // Empties one span whose slots fit into others of its size, if there is one: calls moved(owner, new place) for each,
  // when its bytes are there. False: there is none.
  template <class Moved>
  bool move_together(Moved moved);
  // Gives the memory of empty spans back, but for a few that are soon filled again.
  void drop_empty(std::size_t but = kSpare);

  // The memory it has: of spans that hold something, and of empty ones that were not given back.
  [[nodiscard]] std::size_t held_bytes() const { return (used_ + empty_count_) * kSpanBytes; }
  // ... of which that much is in slots that are taken.
  [[nodiscard]] std::size_t taken_bytes() const { return taken_steps_ * kStep; }

 private:
  using SpanNumber = std::uint32_t;  // 0: none; there is no span 0, so that no place is 0
  static constexpr std::size_t kSteps = kSpanBytes / kStep;
  static constexpr std::size_t kSizes = (kMostBytes + kHeader) / kStep + 1;
  struct Span {
    std::uint16_t steps = 0;      // of a slot; 0: empty
    std::uint16_t taken = 0;      // slots
    std::uint16_t cut = 0;        // steps from the beginning that have been slots
    std::uint16_t free_slot = 0;  // the first, in steps from the beginning, plus one; each names the next in its header
    SpanNumber before = 0, after = 0;  // in the list of its size, of those with a free slot
  };

  SpanPool() = default;
  [[nodiscard]] std::byte* slot_at(Place place) const { return memory_.data() + std::size_t{place} * kStep; }
  [[nodiscard]] std::uint32_t& header_at(Place place) const {
    return *reinterpret_cast<std::uint32_t*>(slot_at(place));
  }
  [[nodiscard]] static Place place_of(SpanNumber span, std::size_t steps) {
    return static_cast<Place>(span * kSteps + steps);
  }
  [[nodiscard]] static std::size_t slots_in(const Span& span) { return kSteps / span.steps; }
  [[nodiscard]] SpanNumber new_span(std::size_t steps);
  [[nodiscard]] Place take_in(SpanNumber number, Owner owner);
  void list(SpanNumber number);
  void unlist(SpanNumber number);
  // One whose slots others of its size have room for, as empty as can be found quickly; 0 if there is none.
  [[nodiscard]] SpanNumber sparse_span() const;
  static constexpr int kLooks = 8;  // at spans of a size, for a sparse one

  os::Mapping memory_;
  os::ReservedArray<Span> spans_;
  os::ReservedArray<SpanNumber> empty_;  // a stack of those that have memory
  os::ReservedArray<SpanNumber> bare_;   // ... of those that have none
  std::size_t empty_count_ = 0, bare_count_ = 0;
  SpanNumber end_ = 1;  // spans from here on were never used
  SpanNumber capacity_ = 1;
  std::array<SpanNumber, kSizes> with_room_{};  // by steps: the list of spans that have a free slot
  std::size_t used_ = 0;                        // spans with something in them
  std::size_t taken_steps_ = 0;
};

template <class Moved>
bool SpanPool::move_together(Moved moved) {
  const SpanNumber from = sparse_span();
  if (from == 0) return false;
  const std::size_t steps = spans_[from].steps;
  const std::size_t cut = spans_[from].cut;
  unlist(from);  // nothing is to be put there meanwhile
  // A free slot's header names another slot, a taken one's its owner: so the free ones are marked first.
  for (std::uint16_t free = spans_[from].free_slot; free != 0;) {
    std::uint32_t& header = header_at(place_of(from, free - 1u));
    free = static_cast<std::uint16_t>(header);
    header = 0;
  }
  for (std::size_t step = 0; step < cut; step += steps) {
    const Place old = place_of(from, step);
    const Owner owner = header_at(old);
    if (owner == 0) continue;
    const Place place = take_in(with_room_[steps], owner);
    std::copy_n(at(old), steps * kStep - kHeader, at(place));
    moved(owner, place);
    taken_steps_ -= steps;
  }
  spans_[from] = {};
  --used_;
  empty_[empty_count_++] = from;
  return true;
}

}  // namespace farheap::segment
