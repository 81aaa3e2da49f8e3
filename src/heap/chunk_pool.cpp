// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a chunk is in with_free_ while it has a free granule, in with_dirty_ while it has a dirty one.
// Pages are dropped outside of the lock; meanwhile their granules count as neither free nor used.
#include "heap/chunk_pool.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "base/mutex.hpp"

namespace farheap::heap {

namespace {

// Bits where `count` set bits in a row begin.
[[nodiscard]] std::uint32_t row_starts(std::uint32_t bits, unsigned count) {
  std::uint32_t starts = bits;
  for (unsigned i = 1; i < count; ++i) starts &= bits >> i;
  return starts;
}
[[nodiscard]] std::uint32_t row(unsigned first, unsigned count) {
  return static_cast<std::uint32_t>(((std::uint64_t{1} << count) - 1) << first);
}
[[nodiscard]] std::size_t bits_in(std::uint32_t bits) { return static_cast<std::size_t>(std::popcount(bits)); }

}  // namespace

ChunkPool::ChunkPool(segment::PageSpace& space, base::MetadataSource& source) noexcept
    : space_(&space),
      chunks_(space.capacity_bytes() / kChunkBytes + 1, source),
      with_free_(space.capacity_bytes() / kChunkBytes + 1, source),
      with_dirty_(space.capacity_bytes() / kChunkBytes + 1, source) {}

void ChunkPool::attach(segment::PageSpace& space) noexcept {
  space_ = &space;
  ::new (&mutex_) BinLock;
  mutex_.assume_held();  // at rest
  allowance_ = {};
}

bool ChunkPool::usable() const noexcept {
  mutex_.assume_held();  // whether the tables are there never changes
  return chunks_.usable() && with_free_.usable() && with_dirty_.usable();
}

std::byte* ChunkPool::address(std::size_t chunk, unsigned granule) const noexcept {
  return space_->base() + chunk * kChunkBytes + granule * kGranuleBytes;
}

std::size_t ChunkPool::dirty_limit() const noexcept {
  return std::max<std::size_t>(allowance_.granules, used_granules_ / kDirtyShare);
}

std::size_t ChunkPool::kept_empty() const noexcept { return allowance_.granules / kGranulesPerChunk; }

// Called after granules were taken, so that dirty_granules_ is at its lowest. What was dropped in vain is allowed from
// now on; half of what waited for nothing is not, after so many calls that everything could have been taken.
void ChunkPool::learn(std::size_t granules_made_anew) noexcept {
  auto in_vain = static_cast<std::uint32_t>(std::min<std::size_t>(granules_made_anew, allowance_.dropped));
  allowance_.dropped -= in_vain;
  allowance_.granules = std::min(allowance_.granules + in_vain, allowance_.most);
  allowance_.idle = static_cast<std::uint32_t>(std::min<std::size_t>(allowance_.idle, dirty_granules_));
  if (++allowance_.calls < kLookEvery * allowance_.granules) return;
  allowance_.granules =
      std::max(allowance_.granules - std::min(allowance_.granules, allowance_.idle / 2), kDirtyAlways);
  allowance_.calls = 0;
  allowance_.idle = static_cast<std::uint32_t>(dirty_granules_);
}

void ChunkPool::serve(std::size_t threads) noexcept {
  base::LockGuard lock(mutex_);
  allowance_.most = kDirtyAlways * static_cast<std::uint32_t>(std::max<std::size_t>(threads, 1));
  allowance_.granules = std::min(allowance_.granules, allowance_.most);
  if (dirty_granules_ > dirty_limit()) drop_down_to(dirty_limit() / 2);
}

// Takes free granules out of the books.
void ChunkPool::withdraw(std::size_t index, std::uint32_t granules) noexcept {
  Chunk& chunk = chunks_[index];
  if (chunk.free == kAll) --empty_chunks_;
  bool had_dirty = chunk.dirty != 0;
  dirty_granules_ -= bits_in(chunk.dirty & granules);
  chunk.free &= ~granules;
  chunk.dirty &= ~granules;
  if (chunk.free == 0) with_free_.erase(index);
  if (had_dirty && chunk.dirty == 0) with_dirty_.erase(index);
}

// Requires: `from`, a part of the chunk's free granules, has `count` in a row.
std::size_t ChunkPool::take(std::size_t index, std::uint32_t from, unsigned count) noexcept {
  auto first = static_cast<unsigned>(std::countr_zero(row_starts(from, count)));
  withdraw(index, row(first, count));
  used_granules_ += count;
  return index * kGranulesPerChunk + first;
}

// What is in memory already comes first, and within that the lowest addresses, so that the high chunks empty.
std::size_t ChunkPool::take_lowest(unsigned count) noexcept {
  for (std::size_t i = with_dirty_.lowest(); i != IndexSet::kNone; i = with_dirty_.lowest_from(i + 1)) {
    if (row_starts(chunks_[i].dirty, count) != 0) return take(i, chunks_[i].dirty, count);
  }
  for (std::size_t i = with_free_.lowest(); i != IndexSet::kNone; i = with_free_.lowest_from(i + 1)) {
    if (row_starts(chunks_[i].free, count) != 0) return take(i, chunks_[i].free, count);
  }
  return kNone;
}

bool ChunkPool::add_chunk() noexcept {
  std::byte* at = space_->obtain(kChunkBytes, kChunkBytes);
  if (at == nullptr) return false;
  auto index = static_cast<std::size_t>(at - space_->base()) / kChunkBytes;
  chunks_[index] = {kAll, 0};
  with_free_.insert(index);
  ++empty_chunks_;
  chunk_limit_ = std::max(chunk_limit_, index + 1);
  return true;
}

std::size_t ChunkPool::obtain(unsigned count) noexcept {
  base::LockGuard lock(mutex_);
  std::size_t dirty_before = dirty_granules_;
  std::size_t granule = take_lowest(count);
  if (granule == kNone && add_chunk()) granule = take_lowest(count);
  if (granule != kNone) learn(count - (dirty_before - dirty_granules_));
  return granule;
}

void ChunkPool::note_free(std::size_t index, std::uint32_t granules, bool dirty) noexcept {
  Chunk& chunk = chunks_[index];
  if (chunk.free == 0) with_free_.insert(index);
  chunk.free |= granules;
  if (dirty) {
    if (chunk.dirty == 0) with_dirty_.insert(index);
    chunk.dirty |= granules;
    dirty_granules_ += bits_in(granules);
  }
  if (chunk.free == kAll) ++empty_chunks_;
}

// Gives the chunk back, without the lock, if it is empty and there are more than `keep` of those.
void ChunkPool::give_back_if_spare(std::size_t index, std::size_t keep) noexcept {
  if (chunks_[index].free != kAll || empty_chunks_ <= keep) return;
  allowance_.dropped += static_cast<std::uint32_t>(bits_in(chunks_[index].dirty));
  withdraw(index, kAll);
  const base::Without unlocked(mutex_);
  space_->give_back(address(index, 0), kChunkBytes);
}

void ChunkPool::give_back(std::size_t granule, unsigned count) noexcept {
  std::size_t index = granule / kGranulesPerChunk;
  base::LockGuard lock(mutex_);
  used_granules_ -= count;
  note_free(index, row(static_cast<unsigned>(granule % kGranulesPerChunk), count), true);
  bool too_many = dirty_granules_ > dirty_limit();
  give_back_if_spare(index, kept_empty());
  if (too_many) drop_down_to(dirty_limit() / 2);
}

void ChunkPool::drop_down_to(std::size_t keep) noexcept {
  while (dirty_granules_ > keep) {
    std::size_t index = with_dirty_.lowest();
    std::uint32_t dropping = chunks_[index].dirty;
    withdraw(index, dropping);
    allowance_.dropped += static_cast<std::uint32_t>(bits_in(dropping));
    drop(index, dropping);
    note_free(index, dropping, false);
    give_back_if_spare(index, kept_empty());
  }
}

// Without the lock.
void ChunkPool::drop(std::size_t index, std::uint32_t granules) noexcept {
  const base::Without unlocked(mutex_);
  for (std::uint32_t rest = granules; rest != 0;) {
    auto first = static_cast<unsigned>(std::countr_zero(rest));
    auto count = static_cast<unsigned>(std::countr_one(rest >> first));
    space_->discard(address(index, first), count * kGranuleBytes);
    rest &= ~row(first, count);
  }
}

void ChunkPool::purge() noexcept {
  base::LockGuard lock(mutex_);
  drop_down_to(0);
  for (std::size_t i = with_free_.lowest(); i != IndexSet::kNone && empty_chunks_ > 0;
       i = with_free_.lowest_from(i + 1)) {
    give_back_if_spare(i, 0);
  }
  allowance_.dropped = 0;  // it was asked for: nothing is to be learnt from that
}

std::size_t ChunkPool::dirty_bytes() noexcept {
  base::LockGuard lock(mutex_);
  return dirty_granules_ * kGranuleBytes;
}

std::size_t ChunkPool::used_bytes() noexcept {
  base::LockGuard lock(mutex_);
  return used_granules_ * kGranuleBytes;
}

}  // namespace farheap::heap
