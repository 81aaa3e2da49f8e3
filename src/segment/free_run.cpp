// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/free_run.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <new>

#include "base/units.hpp"

namespace farheap::segment {

union FreeRunPool::Record {
  struct {
    Record* next;
    std::size_t block_bytes;
  } link;
  FreeRun run;
  Record() : link{nullptr, 0} {}
  ~Record() {}
};

static_assert(sizeof(FreeRun) == 64, "records lie in kept segments: see heap/book_layout.hpp");

FreeRunPool::~FreeRunPool() {
  while (source_->is_mapped() && blocks_ != nullptr) {
    Record* block = blocks_;
    blocks_ = block->link.next;
    munmap(block, block->link.block_bytes);
  }
}

bool FreeRunPool::grow() noexcept {
  std::size_t bytes = next_block_bytes_;
  void* block = source_->reserve(bytes);
  if (block == nullptr) return false;
  auto* records = static_cast<Record*>(block);
  records->link = {blocks_, bytes};
  blocks_ = records;
  next_ = records + 1;
  last_ = records + bytes / sizeof(Record);
  next_block_bytes_ = std::min(bytes * 2, 4 * base::kMiB);
  return true;
}

FreeRun* FreeRunPool::make(std::uintptr_t start, std::uintptr_t end) noexcept {
  Record* record = spare_;
  if (record != nullptr) {
    spare_ = record->link.next;
  } else {
    if (next_ == last_ && !grow()) return nullptr;
    record = next_++;
  }
  auto* run = ::new (static_cast<void*>(record)) FreeRun;
  run->start = start;
  run->end = end;
  return run;
}

// A record that is not in use is known by its end, which is none: recycle() leaves a 0 there.
void FreeRunPool::move(const base::AddressShift& shift, Visit visit, void* context) noexcept {
  static_assert(offsetof(FreeRun, end) == sizeof(Record*));
  shift(blocks_);
  shift(next_);
  shift(last_);
  shift(spare_);
  for (Record* one = spare_; one != nullptr; one = one->link.next) shift(one->link.next);
  for (Record* block = blocks_; block != nullptr; block = block->link.next) {
    shift(block->link.next);
    const Record* const end = block == blocks_ ? next_ : block + block->link.block_bytes / sizeof(Record);
    for (Record* one = block + 1; one < end; ++one) {
      if (one->run.end != 0) visit(context, one->run);
    }
  }
}

void FreeRunPool::recycle(FreeRun* run) noexcept {
  auto* record = reinterpret_cast<Record*>(run);
  record->link = {spare_, 0};
  spare_ = record;
}

bool FreeRunPool::is_sound(const std::byte* tables, const std::byte* end,
                           const std::unordered_set<const FreeRun*>& in_use) const {
  const auto from = reinterpret_cast<std::uintptr_t>(tables), to = reinterpret_cast<std::uintptr_t>(end);
  const auto holds = [&](const Record* first, const Record* last) {
    const auto low = reinterpret_cast<std::uintptr_t>(first), high = reinterpret_cast<std::uintptr_t>(last);
    return low % sizeof(FreeRun) == 0 && high % sizeof(FreeRun) == 0 && low >= from && low <= high && high <= to;
  };
  if (next_block_bytes_ < 64 * base::kKiB || next_block_bytes_ > 4 * base::kMiB ||
      !std::has_single_bit(next_block_bytes_)) {
    return false;
  }
  if ((next_ != nullptr || last_ != nullptr) && !holds(next_, last_)) return false;
  std::unordered_set<const Record*> seen;
  for (const Record* one = spare_; one != nullptr; one = one->link.next) {
    const bool unused = next_ <= one && one < last_;
    if (!holds(one, one + 1) || unused || !seen.insert(one).second) return false;
    if (in_use.contains(reinterpret_cast<const FreeRun*>(one))) return false;
  }
  for (const FreeRun* const run : in_use) {
    const auto* const one = reinterpret_cast<const Record*>(run);
    if (next_ <= one && one < last_) return false;
  }
  return true;
}

}  // namespace farheap::segment
