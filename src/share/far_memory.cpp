// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a block that is dirty has one user, and its bytes are newer than the store's; any other is as the store
// had it at its version.
#include "share/far_memory.hpp"

#include <algorithm>
#include <cstring>

#include "base/mutex.hpp"
#include "store/batch.hpp"

namespace farheap::share {

FarMemory::FarMemory(Store& store, Users users, std::size_t most_blocks, Keep keep)
    : store_(store), users_(users), most_blocks_(most_blocks), keep_(keep), block_bytes_(store.limits().block_bytes) {}

FarMemory::Part FarMemory::part_at(std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t first = offset / block_bytes_;
  const std::uint64_t all = (offset + bytes - 1) / block_bytes_ - first + 1;
  const Limits limits = store_.limits();
  const std::uint64_t most = std::min<std::uint64_t>(
      {most_blocks_, limits.largest_batch_operations, limits.largest_batch_bytes / block_bytes_});
  return {first, std::min(all, most)};
}

FarMemory::Block& FarMemory::block(std::uint64_t number) {
  Block& found = blocks_[number];
  if (found.bytes.empty()) {
    found.bytes.resize(block_bytes_);
    found.use = uses_.insert(uses_.begin(), number);
  } else {
    uses_.splice(uses_.begin(), uses_, found.use);
  }
  return found;
}

FarMemory::Block* FarMemory::remembered(std::uint64_t offset, std::uint64_t bytes) {
  if (keep_ != Keep::kForWrites || users_ != Users::kOne || bytes == 0) return nullptr;
  const std::uint64_t number = offset / block_bytes_;
  if (bytes > block_bytes_ - offset % block_bytes_) return nullptr;
  const auto found = blocks_.find(number);
  if (found == blocks_.end()) return nullptr;
  if (uses_.front() != number) uses_.splice(uses_.begin(), uses_, found->second.use);
  return &found->second;
}

Status FarMemory::read_again(std::uint64_t number, Block& here) {
  Get get{.block = number, .into = here.bytes};
  Status status = store_.get({&get, 1});
  if (get.outcome == Outcome::kAbsent) {
    std::ranges::fill(here.bytes, std::byte{0});
  } else if (!status) {
    drop(number);
  }
  return status;
}

// What could not be written is lost, and said to be: the next read is to tell what the store has.
Status FarMemory::write_now(std::uint64_t number, Block& here) {
  Put put{.block = number, .from = here.bytes};
  Status status = store_.put({&put, 1});
  if (!status) drop(number);
  return status;
}

void FarMemory::drop(std::uint64_t number) {
  const auto found = blocks_.find(number);
  uses_.erase(found->second.use);
  blocks_.erase(found);
}

Status FarMemory::put_back(std::vector<std::uint64_t> numbers) {
  std::ranges::sort(numbers);  // neighbours go together
  std::vector<Put> puts;
  puts.reserve(numbers.size());
  for (const std::uint64_t number : numbers) puts.push_back({.block = number, .from = blocks_[number].bytes});
  const Limits limits = store_.limits();
  const std::size_t at_once =
      std::min<std::size_t>(limits.largest_batch_operations, limits.largest_batch_bytes / block_bytes_);
  for (std::size_t i = 0; i < puts.size(); i += at_once) {
    const auto batch = std::span(puts).subspan(i, std::min(at_once, puts.size() - i));
    if (Status status = store_.put(batch); !status) return status;
    for (const Put& one : batch) blocks_[one.block].is_dirty = false;
  }
  return {};
}

// A quarter goes at once, so that what is dirty goes in batches.
Status FarMemory::make_room(std::uint64_t blocks) {
  if (blocks_.size() + blocks <= most_blocks_) return {};
  const std::size_t most_left = most_blocks_ - std::max<std::size_t>(blocks, most_blocks_ / 4);
  std::vector<std::uint64_t> dirty;
  std::size_t left = blocks_.size();
  for (auto at = uses_.rbegin(); at != uses_.rend() && left > most_left; ++at, --left) {
    if (blocks_[*at].is_dirty) dirty.push_back(*at);
  }
  if (Status status = put_back(std::move(dirty)); !status) return status;
  while (blocks_.size() > most_left) {
    blocks_.erase(uses_.back());
    uses_.pop_back();
  }
  return {};
}

// As write_now().
Status FarMemory::write_through(Part part) {
  if (keep_ == Keep::kBlocks) return {};
  std::vector<std::uint64_t> dirty;
  for (std::uint64_t i = 0; i < part.count; ++i) {
    const auto found = blocks_.find(part.first + i);
    if (found != blocks_.end() && found->second.is_dirty) dirty.push_back(found->first);
  }
  Status status = put_back(dirty);
  for (const std::uint64_t number : dirty) {
    if (blocks_.find(number)->second.is_dirty) drop(number);
  }
  return status;
}

Status FarMemory::bring(Part part, Bytes written) {
  const bool is_read = written.begin == written.end;
  std::uint64_t missing = 0;
  for (std::uint64_t i = 0; i < part.count; ++i) missing += blocks_.contains(part.first + i) ? 0 : 1;
  for (std::uint64_t i = 0; i < part.count; ++i) {
    if (blocks_.contains(part.first + i)) (void)block(part.first + i);  // stays while room is made
  }
  if (Status status = make_room(missing); !status) return status;
  std::vector<Get> gets;
  for (std::uint64_t i = 0; i < part.count; ++i) {
    const std::uint64_t number = part.first + i;
    const bool is_known = blocks_.contains(number) && !(is_read && keep_ == Keep::kForWrites);
    const bool is_covered = written.begin <= number * block_bytes_ && (number + 1) * block_bytes_ <= written.end;
    Block& one = block(number);
    if (users_ == Users::kOne && (is_known || is_covered)) continue;
    // Of one user nothing but bytes is asked: engines without versions call them all alike.
    gets.push_back({.block = number, .into = one.bytes, .known = users_ == Users::kMany ? one.version : 0});
  }
  if (gets.empty()) return {};
  Status status = store_.get(gets);
  for (const Get& one : gets) {
    Block& here = blocks_[one.block];
    if (one.outcome == Outcome::kOk) {
      here.version = one.version;
    } else if (one.outcome == Outcome::kAbsent) {
      std::ranges::fill(here.bytes, std::byte{0});
      here.version = 0;
    } else if (one.outcome != Outcome::kSame) {
      drop(one.block);  // what it holds is nobody's
    }
  }
  return status;
}

Result<bool> FarMemory::swap(Part part) {
  std::vector<Put> puts;
  for (std::uint64_t i = 0; i < part.count; ++i) {
    Block& one = blocks_[part.first + i];
    puts.push_back({.block = part.first + i, .from = one.bytes, .expected = one.version});
  }
  Status status = store_.put(puts);
  bool all = true;
  for (const Put& one : puts) {
    Block& here = blocks_[one.block];
    if (one.outcome == Outcome::kOk) {
      here.version = one.version;
      continue;
    }
    all = false;
    drop(one.block);
  }
  const bool is_told = std::ranges::all_of(puts, [](const Put& one) {
    return one.outcome == Outcome::kOk || one.outcome == Outcome::kConflict || one.outcome == Outcome::kUnknown;
  });
  if (!is_told) return fail(std::move(status.error()));
  return all;
}

// `change` may be called again for the same bytes: where another user was faster, or nobody knows whether it was done.
template <class Change>
Status FarMemory::change(std::uint64_t offset, std::uint64_t bytes, const Change& change) {
  base::LockGuard lock(mutex_);
  if (Block* const here = remembered(offset, bytes)) {
    change(std::span(here->bytes).subspan(offset % block_bytes_, bytes), 0);
    return write_now(offset / block_bytes_, *here);
  }
  for (std::uint64_t done = 0; done < bytes;) {
    const Part part = part_at(offset + done, bytes - done);
    if (Status status = bring(part, {offset + done, offset + bytes}); !status) return status;
    const std::uint64_t end = std::min(bytes, (part.first + part.count) * block_bytes_ - offset);
    for (std::uint64_t at = done; at < end;) {
      const std::uint64_t inside = (offset + at) % block_bytes_;
      const std::uint64_t count = std::min(end - at, block_bytes_ - inside);
      Block& one = block((offset + at) / block_bytes_);
      change(std::span(one.bytes).subspan(inside, count), at);
      one.is_dirty = users_ == Users::kOne;
      at += count;
    }
    if (users_ == Users::kMany) {
      auto all = swap(part);
      if (!all) return fail(std::move(all.error()));
      if (!*all) continue;
    }
    if (Status status = write_through(part); !status) return status;
    done = end;
  }
  return {};
}

Status FarMemory::write(std::uint64_t offset, std::span<const std::byte> from) {
  return change(offset, from.size(), [&](std::span<std::byte> here, std::uint64_t at) {
    std::memcpy(here.data(), from.data() + at, here.size());
  });
}

Status FarMemory::fill_with_zeros(std::uint64_t offset, std::uint64_t bytes) {
  return change(offset, bytes, [](std::span<std::byte> here, std::uint64_t) { std::ranges::fill(here, std::byte{0}); });
}

// The bytes are the store's at one moment: nobody's lock is needed for that, and nothing is remembered.
bool FarMemory::read_part(std::uint64_t offset, std::span<std::byte> into) {
  const std::uint64_t inside = offset % block_bytes_;
  if (keep_ != Keep::kForWrites || into.empty() || into.size() > block_bytes_ - inside) return false;
  const Outcome outcome = store_.get_part(offset / block_bytes_, inside, into);
  if (outcome == Outcome::kAbsent) std::ranges::fill(into, std::byte{0});
  return outcome == Outcome::kOk || outcome == Outcome::kAbsent;
}

Status FarMemory::read(std::uint64_t offset, std::span<std::byte> into) {
  if (read_part(offset, into)) return {};
  base::LockGuard lock(mutex_);
  if (Block* const here = remembered(offset, into.size())) {
    Status status = read_again(offset / block_bytes_, *here);
    if (status) std::memcpy(into.data(), here->bytes.data() + offset % block_bytes_, into.size());
    return status;
  }
  for (std::uint64_t done = 0; done < into.size();) {
    const Part part = part_at(offset + done, into.size() - done);
    if (Status status = bring(part, {}); !status) return status;
    const std::uint64_t end = std::min<std::uint64_t>(into.size(), (part.first + part.count) * block_bytes_ - offset);
    while (done < end) {
      const std::uint64_t inside = (offset + done) % block_bytes_;
      const std::uint64_t count = std::min(end - done, block_bytes_ - inside);
      std::memcpy(into.data() + done, block((offset + done) / block_bytes_).bytes.data() + inside, count);
      done += count;
    }
  }
  return {};
}

Status FarMemory::forget(std::uint64_t first, std::uint64_t count) {
  base::LockGuard lock(mutex_);
  for (auto at = uses_.begin(); at != uses_.end();) {
    const std::uint64_t number = *at;
    at = number - first < count ? (blocks_.erase(number), uses_.erase(at)) : std::next(at);
  }
  return store_.erase(first, count);
}

Status FarMemory::flush() {
  base::LockGuard lock(mutex_);
  std::vector<std::uint64_t> dirty;
  for (const auto& [number, one] : blocks_) {
    if (one.is_dirty) dirty.push_back(number);
  }
  return put_back(std::move(dirty));
}

}  // namespace farheap::share
