// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/free_run.hpp"

#include <sys/mman.h>

#include <algorithm>
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

}  // namespace farheap::segment
