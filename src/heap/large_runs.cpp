// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: run_pages() is non-zero exactly at the first page of every live large object.
#include "heap/large_runs.hpp"

#include <algorithm>
#include <new>

#include "base/mutex.hpp"
#include "heap/misuse.hpp"

namespace farheap::heap {

static constexpr std::size_t kLargestWaiting = 2 * base::kMiB;

void LargeRuns::move(const base::AddressShift& shift) noexcept {
  mutex_.assume_held();  // at rest
  shift(map_);
  for (unsigned i = 0; i < waiting_count_; ++i) shift(waiting_[i].at);
}

void LargeRuns::attach(segment::PageSpace& space) noexcept {
  space_ = &space;
  ::new (&mutex_) base::Mutex;
}

// The best fit that wastes no more than a quarter.
std::byte* LargeRuns::take_waiting(std::size_t bytes, std::size_t alignment, std::size_t& got) noexcept {
  if (bytes > kLargestWaiting) return nullptr;
  base::LockGuard lock(mutex_);
  Waiting* best = nullptr;
  for (Waiting* run = waiting_; run != waiting_ + waiting_count_; ++run) {
    bool fits = run->bytes >= bytes && run->bytes - bytes <= run->bytes / 4 &&
                reinterpret_cast<std::uintptr_t>(run->at) % alignment == 0;
    if (fits && (best == nullptr || run->bytes < best->bytes)) best = run;
  }
  if (best == nullptr) return nullptr;
  std::byte* at = best->at;
  got = best->bytes;
  waiting_bytes_ -= got;
  std::move(best + 1, waiting_ + waiting_count_, best);
  --waiting_count_;
  return at;
}

void LargeRuns::note(std::byte* at, std::size_t bytes) noexcept {
  std::size_t offset = map_->offset_of(at);
  map_->run_pages(offset).store(static_cast<std::uint32_t>(bytes / base::kPageBytes), std::memory_order_relaxed);
  live_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  std::size_t limit = offset_limit_.load(std::memory_order_relaxed);
  while (limit < offset + bytes && !offset_limit_.compare_exchange_weak(limit, offset + bytes)) {
  }
}

LargeRuns::Run LargeRuns::obtain(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes > std::min(map_->capacity_bytes(), kLargestBytes)) return {};
  bytes = base::round_up(bytes, base::kPageBytes);
  std::size_t got = bytes;
  Run run{take_waiting(bytes, alignment, got), false};
  if (run.at == nullptr) run = {space_->obtain(bytes, alignment), true};
  if (run.at != nullptr) note(run.at, got);
  return run;
}

void LargeRuns::give_back(void* object) noexcept {
  std::size_t offset = map_->offset_of(object);
  bool possible = offset < map_->capacity_bytes() && offset % base::kPageBytes == 0;
  // The exchange lets one of two threads that free the same object at once win, and stops the other.
  std::size_t pages = possible ? map_->run_pages(offset).exchange(0, std::memory_order_relaxed) : 0;
  if (pages == 0) stop_not_allocated(object, "is not the start of an object, or was freed before");
  auto* at = static_cast<std::byte*>(object);
  std::size_t bytes = pages * base::kPageBytes;
  live_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (bytes > std::min(kLargestWaiting, most_waiting_)) {
    space_->give_back(at, bytes);
    return;
  }
  base::LockGuard lock(mutex_);
  while (waiting_count_ == kWaiting || waiting_bytes_ + bytes > most_waiting_) {
    Waiting oldest = waiting_[0];
    std::move(waiting_ + 1, waiting_ + waiting_count_, waiting_);
    --waiting_count_;
    waiting_bytes_ -= oldest.bytes;
    const base::Without unlocked(mutex_);
    space_->give_back(oldest.at, oldest.bytes);
  }
  waiting_[waiting_count_++] = {at, bytes};
  waiting_bytes_ += bytes;
}

std::size_t LargeRuns::usable_bytes(const void* at) const noexcept {
  std::size_t offset = map_->offset_of(at);
  if (offset >= map_->capacity_bytes() || offset % base::kPageBytes != 0) return 0;
  return map_->run_pages(offset).load(std::memory_order_relaxed) * base::kPageBytes;
}

bool LargeRuns::resize(void* object, std::size_t bytes) noexcept {
  std::size_t old_bytes = usable_bytes(object);
  if (bytes > std::min(map_->capacity_bytes(), kLargestBytes)) return false;
  bytes = base::round_up(bytes, base::kPageBytes);
  auto* at = static_cast<std::byte*>(object);
  if (bytes > old_bytes && !space_->extend(at, old_bytes, bytes)) return false;
  if (bytes < old_bytes) {
    map_->run_pages(map_->offset_of(at)).store(static_cast<std::uint32_t>(bytes / base::kPageBytes));
    live_bytes_.fetch_sub(old_bytes - bytes, std::memory_order_relaxed);
    space_->give_back(at + bytes, old_bytes - bytes);
    return true;
  }
  live_bytes_.fetch_sub(old_bytes, std::memory_order_relaxed);
  note(at, bytes);
  return true;
}

void LargeRuns::purge() noexcept {
  base::LockGuard lock(mutex_);
  while (waiting_count_ > 0) {
    Waiting last = waiting_[--waiting_count_];
    waiting_bytes_ -= last.bytes;
    const base::Without unlocked(mutex_);
    space_->give_back(last.at, last.bytes);
  }
}

std::size_t LargeRuns::waiting_bytes() noexcept {
  base::LockGuard lock(mutex_);
  return waiting_bytes_;
}

}  // namespace farheap::heap
