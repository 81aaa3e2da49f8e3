// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/slot_writer.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace farheap::segment {

SlotWriter::SlotWriter(Store& source, Store& target, std::uint64_t first)
    : source_(source), target_(target), buffer_(kSlots * base::kPageBytes), first_(first) {}

Result<std::byte*> SlotWriter::take() {
  if (!buffer_.is_there()) return fail(ErrorCode::kNoSpace, "cannot copy", target_.describe(), "no memory");
  if (count_ == kSlots) {
    if (Status status = flush(); !status) return fail(std::move(status.error()));
  }
  if (next() >= SlotRef::kSlots) {
    return fail(ErrorCode::kNoSpace, "cannot copy", target_.describe(), "all numbers of its store are used up");
  }
  return at(count_++);
}

Result<std::uint64_t> SlotWriter::put(const BlockWords& block) {
  auto into = take();
  if (!into) return fail(std::move(into.error()));
  std::memcpy(*into, block.data(), sizeof block);
  return next() - 1;
}

Result<std::uint64_t> SlotWriter::fetch(std::uint64_t source_slot) {
  auto into = take();
  if (!into) return fail(std::move(into.error()));
  wanted_.push_back({source_slot, *into});
  return next() - 1;
}

Status SlotWriter::read(std::uint64_t slot, BlockWords& into) {
  if (slot >= first_ && slot < next()) {
    std::memcpy(into.data(), at(slot - first_), sizeof into);
    return {};
  }
  const SlotRead run{slot, 1, reinterpret_cast<std::byte*>(into.data())};
  return read_slots(target_, {&run, 1});
}

Status SlotWriter::flush() {
  if (count_ == 0) return {};
  std::ranges::sort(wanted_, {}, &Wanted::slot);
  std::vector<SlotRead> reads;
  for (const Wanted& one : wanted_) append(reads, one.slot, one.into, longest_read(source_));
  if (Status status = read_slots(source_, reads); !status) return status;
  std::vector<SlotWrite> writes;
  for (std::size_t i = 0; i < count_; ++i) {
    append(writes, first_ + i, static_cast<const std::byte*>(at(i)), longest_write(target_));
  }
  if (Status status = write_slots(target_, writes); !status) return status;
  go_back_to(next());
  return {};
}

void SlotWriter::go_back_to(std::uint64_t slot) {
  first_ = slot;
  count_ = 0;
  wanted_.clear();
}

}  // namespace farheap::segment
