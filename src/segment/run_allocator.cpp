// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: the free runs are disjoint, and no two of them touch (neighbours are joined at once). Every free
// run is in both trees, and leaves the tree by size before its bounds change.
#include "segment/run_allocator.hpp"

#include <algorithm>
#include <cassert>
#include <new>

#include "base/format_into.hpp"
#include "base/log.hpp"
#include "base/units.hpp"

namespace farheap::segment {

namespace {

[[nodiscard]] std::uintptr_t align_up(std::uintptr_t value, std::size_t alignment) {
  return (value + alignment - 1) & ~(static_cast<std::uintptr_t>(alignment) - 1);
}
[[nodiscard]] bool fits(const FreeRun& run, std::size_t bytes, std::size_t alignment) {
  std::uintptr_t start = align_up(run.start, alignment);
  return start >= run.start && start <= run.end && run.end - start >= bytes;
}

}  // namespace

RunAllocator::RunAllocator(std::byte* base, std::size_t bytes, base::MetadataSource& source) noexcept
    : begin_(address_of(base)), end_(begin_ + bytes), pool_(source) {
  assert(begin_ % base::kPageBytes == 0 && bytes % base::kPageBytes == 0);
  if (bytes == 0) return;
  FreeRun* all = pool_.make(begin_, end_);
  if (all == nullptr) return;  // no room: as if everything were taken
  insert(*all);
  free_bytes_ = bytes;
}

// The trees are made anew from the records: their links are nobody's business but Boost's.
void RunAllocator::move(const base::AddressShift& shift) noexcept {
  shift(begin_);
  shift(end_);
  ::new (static_cast<void*>(&by_address_)) FreeRunsByAddress;
  ::new (static_cast<void*>(&by_size_)) FreeRunsBySize;
  struct Context {
    RunAllocator& runs;
    const base::AddressShift& shift;
  } context{*this, shift};
  const auto insert_again = [](void* where, FreeRun& run) {
    const auto& [runs, by] = *static_cast<Context*>(where);
    Address start = run.start, end = run.end;
    by(start);
    by(end);
    auto* const fresh = ::new (static_cast<void*>(&run)) FreeRun;
    fresh->start = start;
    fresh->end = end;
    runs.insert(*fresh);
  };
  pool_.move(shift, insert_again, &context);
}

void RunAllocator::insert(FreeRun& run) noexcept {
  by_address_.insert(run);
  by_size_.insert(run);
}

void RunAllocator::remove(FreeRun& run) noexcept {
  by_address_.erase(by_address_.iterator_to(run));
  by_size_.erase(by_size_.iterator_to(run));
  pool_.recycle(&run);
}

// The bounds move only into space that belongs to no other free run, so the order by address stays right.
void RunAllocator::resize(FreeRun& run, Address start, Address end) noexcept {
  by_size_.erase(by_size_.iterator_to(run));
  run.start = start;
  run.end = end;
  by_size_.insert(run);
}

FreeRun* RunAllocator::find_fit(std::size_t bytes, std::size_t alignment) noexcept {
  // A run this large holds it whatever its own alignment is; smaller ones may or may not, so try a few of them
  // first (they are the better fit), and all of them when there is nothing larger.
  constexpr int kTries = 8;
  std::size_t sure = bytes + alignment - base::kPageBytes;
  auto small = by_size_.lower_bound(bytes, FreeRunSizeOrder{});
  int tries = 0;
  for (; small != by_size_.end() && small->bytes() < sure && tries < kTries; ++small, ++tries) {
    if (fits(*small, bytes, alignment)) return &*small;
  }
  auto large = by_size_.lower_bound(sure, FreeRunSizeOrder{});
  if (large != by_size_.end()) return &*large;
  for (; small != by_size_.end(); ++small) {
    if (fits(*small, bytes, alignment)) return &*small;
  }
  return nullptr;
}

FreeRun* RunAllocator::find_holding(Address start, Address end) noexcept {
  auto after = by_address_.upper_bound(start, FreeRunAddressOrder{});
  if (after == by_address_.begin()) return nullptr;
  FreeRun& run = *std::prev(after);
  return run.end >= end ? &run : nullptr;
}

// Cuts [start, end) out of a free run that holds it. False if the record for a second rest cannot be had.
bool RunAllocator::take(FreeRun& run, Address start, Address end) noexcept {
  bool rest_before = run.start < start;
  bool rest_after = end < run.end;
  if (rest_before && rest_after) {
    FreeRun* after = pool_.make(end, run.end);
    if (after == nullptr) return false;
    resize(run, run.start, start);
    insert(*after);
  } else if (rest_before) {
    resize(run, run.start, start);
  } else if (rest_after) {
    resize(run, end, run.end);
  } else {
    remove(run);
  }
  free_bytes_ -= end - start;
  return true;
}

std::byte* RunAllocator::obtain(std::size_t bytes, std::size_t alignment) noexcept {
  assert(bytes > 0 && bytes % base::kPageBytes == 0);
  assert(alignment >= base::kPageBytes && (alignment & (alignment - 1)) == 0);
  if (bytes > free_bytes_ || alignment > free_bytes_) return nullptr;  // also keeps the sums below from wrapping
  FreeRun* run = find_fit(bytes, alignment);
  if (run == nullptr) return nullptr;
  Address start = align_up(run->start, alignment);
  if (!take(*run, start, start + bytes)) return nullptr;
  return reinterpret_cast<std::byte*>(start);
}

bool RunAllocator::obtain_at(std::byte* at, std::size_t bytes) noexcept {
  Address start = address_of(at);
  if (bytes == 0) return true;
  if (start < begin_ || start > end_ || bytes > end_ - start) return false;
  FreeRun* run = find_holding(start, start + bytes);
  return run != nullptr && take(*run, start, start + bytes);
}

bool RunAllocator::extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) noexcept {
  assert(new_bytes >= bytes);
  return obtain_at(at + bytes, new_bytes - bytes);
}

void RunAllocator::give_back(std::byte* at, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  Address start = address_of(at);
  Address end = start + bytes;
  auto after = by_address_.upper_bound(start, FreeRunAddressOrder{});
  FreeRun* next = after == by_address_.end() ? nullptr : &*after;
  FreeRun* previous = after == by_address_.begin() ? nullptr : &*std::prev(after);
  bool outside = start < begin_ || end > end_ || end < start;
  if (outside || (previous != nullptr && previous->end > start) || (next != nullptr && next->start < end)) {
    char text[128];
    base::stop(base::format_into(text, "a run of pages at {} ({} bytes) is given back, but it {}", fmt::ptr(at), bytes,
                                 outside ? "lies outside of the range" : "is free already"));
  }
  bool join_previous = previous != nullptr && previous->end == start;
  bool join_next = next != nullptr && next->start == end;
  if (join_previous && join_next) {
    Address joined_end = next->end;
    remove(*next);
    resize(*previous, previous->start, joined_end);
  } else if (join_previous) {
    resize(*previous, previous->start, end);
  } else if (join_next) {
    resize(*next, start, next->end);
  } else if (FreeRun* run = pool_.make(start, end); run != nullptr) {
    insert(*run);
  } else {
    base::log(base::LogLevel::kWarn, "no memory to note that {} bytes of addresses are free: they stay unused", bytes);
    return;
  }
  free_bytes_ += bytes;
}

std::size_t RunAllocator::give_back_taken(std::byte* at, std::size_t bytes) noexcept {
  std::size_t given = 0;
  const Address end = address_of(at) + bytes;
  for (Address start = address_of(at); start < end;) {
    auto after = by_address_.upper_bound(start, FreeRunAddressOrder{});
    if (after != by_address_.begin() && std::prev(after)->end > start) {
      start = std::prev(after)->end;
      continue;
    }
    const Address stop = after == by_address_.end() ? end : std::min(end, after->start);
    give_back(reinterpret_cast<std::byte*>(start), stop - start);
    given += stop - start;
    start = stop;
  }
  return given;
}

FreeRunsByAddress::const_iterator RunAllocator::first_after(Address start) const noexcept {
  auto run = by_address_.upper_bound(start, FreeRunAddressOrder{});
  if (run != by_address_.begin() && std::prev(run)->end > start) --run;
  return run;
}

std::size_t RunAllocator::free_inside(std::byte* at, std::size_t bytes) const noexcept {
  std::size_t sum = 0;
  const Address start = address_of(at), end = start + bytes;
  for (auto run = first_after(start); run != by_address_.end() && run->start < end; ++run) {
    sum += std::min(run->end, end) - std::max(run->start, start);
  }
  return sum;
}

void RunAllocator::take_free(std::byte* at, std::size_t bytes) noexcept {
  const Address end = address_of(at) + bytes;
  for (Address from = address_of(at); from < end;) {
    const auto run = first_after(from);
    if (run == by_address_.end() || run->start >= end) return;
    const Address start = std::max(run->start, from), stop = std::min(run->end, end);
    if (!obtain_at(reinterpret_cast<std::byte*>(start), stop - start)) {
      base::log(base::LogLevel::kWarn, "no memory to note that {} bytes of addresses are taken", stop - start);
    }
    from = stop;
  }
}

std::size_t RunAllocator::largest_free_run() const noexcept {
  return by_size_.empty() ? 0 : by_size_.rbegin()->bytes();
}

}  // namespace farheap::segment
