// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: reserved addresses are handed out, and shut or foreign.
#include "segment/address_books.hpp"

#include <algorithm>

namespace farheap::segment {

AddressBooks::AddressBooks(std::byte* base, std::size_t bytes)
    : base_(base),
      middle_(base + bytes / 4 * 3),
      end_(base + bytes),
      runs_(base, bytes / 4 * 3),
      reservations_(middle_, bytes - bytes / 4 * 3) {
  shut_.add(middle_, static_cast<std::size_t>(end_ - middle_));
}

template <class Self, class Visit>
void AddressBooks::in_areas(Self& self, std::byte* at, std::size_t bytes, const Visit& visit) {
  const std::size_t before = at < self.middle_ ? std::min(bytes, static_cast<std::size_t>(self.middle_ - at)) : 0;
  if (before != 0) visit(self.runs_, at, before);
  if (before != bytes) visit(self.reservations_, at + before, bytes - before);
}

void AddressBooks::take_free(std::byte* at, std::size_t bytes) {
  in_areas(*this, at, bytes, [](auto& area, std::byte* part, std::size_t length) { area.take_free(part, length); });
}

std::byte* AddressBooks::reserve(std::size_t bytes) {
  std::byte* at = reservations_.obtain(bytes, base::kPageBytes);
  if (at != nullptr) reserved_.add(at, bytes);
  return at;
}

void AddressBooks::note_open(std::byte* at, std::size_t bytes) {
  take_free(at, bytes);
  reserved_.remove(at, bytes);
  shut_.remove(at, bytes);
}

void AddressBooks::note_shut(std::byte* at, std::size_t bytes, bool empty) {
  take_free(at, bytes);
  shut_.add(at, bytes);
  if (empty) reserved_.add(at, bytes);
}

void AddressBooks::note_free(std::byte* at, std::size_t bytes, bool shut) {
  in_areas(*this, at, bytes,
           [](auto& area, std::byte* part, std::size_t length) { area.give_back_taken(part, length); });
  reserved_.remove(at, bytes);
  shut ? shut_.add(at, bytes) : shut_.remove(at, bytes);
}

void AddressBooks::note_empty(std::byte* at, std::size_t bytes) {
  Runs empty;
  shut_.for_each_inside(at, bytes, [&](std::byte* part, std::size_t length) {
    in_areas(*this, part, length, [&](auto& area, std::byte* piece, std::size_t piece_bytes) {
      area.for_each_taken(piece, piece_bytes,
                          [&](std::byte* taken, std::size_t taken_bytes) { empty.emplace_back(taken, taken_bytes); });
    });
  });
  for (const auto& [part, length] : empty) reserved_.add(part, length);
}

void AddressBooks::note_foreign(std::byte* at, std::size_t bytes) {
  note_shut(at, bytes, true);
  shut_.remove(at, bytes);
  foreign_.add(at, bytes);
}

bool AddressBooks::is_handed_out(std::byte* at, std::size_t bytes) const {
  bool all = true;
  in_areas(*this, at, bytes, [&](const auto& area, std::byte* part, std::size_t length) {
    all = all && area.free_inside(part, length) == 0;
  });
  return all;
}

std::size_t AddressBooks::counted_bytes() const {
  const auto capacity = static_cast<std::size_t>(end_ - base_);
  return capacity - runs_.free_bytes() - reservations_.free_bytes() - reserved_.bytes();
}

std::size_t AddressBooks::bytes_to_count(std::byte* at, std::size_t bytes) const {
  std::size_t sum = reserved_.overlap(at, bytes);
  in_areas(*this, at, bytes,
           [&](const auto& area, std::byte* part, std::size_t length) { sum += area.free_inside(part, length); });
  return sum;
}

AddressBooks::Runs AddressBooks::counted_runs() const {
  Runs runs;
  const auto counted = [&](std::byte* at, std::size_t bytes) { runs.emplace_back(at, bytes); };
  in_areas(*this, base_, static_cast<std::size_t>(end_ - base_),
           [&](const auto& area, std::byte* at, std::size_t bytes) {
             area.for_each_taken(at, bytes, [&](std::byte* taken, std::size_t taken_bytes) {
               reserved_.for_each_outside(taken, taken_bytes, counted);
             });
           });
  return runs;
}

AddressBooks::Runs AddressBooks::empty_runs() const {
  Runs runs;
  const auto gap = [&](std::byte* from, std::byte* until) {
    if (from == until) return;
    foreign_.for_each_outside(from, static_cast<std::size_t>(until - from),
                              [&](std::byte* at, std::size_t bytes) { runs.emplace_back(at, bytes); });
  };
  std::byte* from = base_;
  for (const auto& [at, bytes] : counted_runs()) {
    gap(from, at);
    from = at + bytes;
  }
  gap(from, end_);
  return runs;
}

void AddressBooks::split(std::byte* at, std::size_t bytes, Runs& foreign, Runs& own) const {
  foreign_.for_each_inside(at, bytes, [&](std::byte* part, std::size_t length) { foreign.emplace_back(part, length); });
  foreign_.for_each_outside(at, bytes, [&](std::byte* part, std::size_t length) { own.emplace_back(part, length); });
}

AddressBooks::Runs AddressBooks::own_runs() const {
  Runs runs;
  foreign_.for_each_outside(base_, static_cast<std::size_t>(end_ - base_),
                            [&](std::byte* at, std::size_t bytes) { runs.emplace_back(at, bytes); });
  return runs;
}

}  // namespace farheap::segment
