// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/checksum_store.hpp"

#include <xxhash.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "store/batch.hpp"
#include "store/block_table.hpp"
#include "store/kinds.hpp"

namespace farheap::store {

Sum sum_of(std::span<const std::byte> block) {
  const XXH128_hash_t hash = XXH3_128bits(block.data(), block.size());
  if (hash.low64 == 0 && hash.high64 == 0) return {1, 0};
  return {hash.low64, hash.high64};
}

ChecksumStore::ChecksumStore(std::unique_ptr<Store> inner)
    : Decorator("checksum", std::move(inner)), block_bytes_(inner_->limits().block_bytes) {}

std::uint64_t ChecksumStore::first_misfit(const Get& entry) const {
  for (std::size_t i = 0; i < blocks_in(entry.into.size()); ++i) {
    if (!fits(entry.block + i, sum_of(entry.into.subspan(i * block_bytes_, block_bytes_)))) return entry.block + i;
  }
  return kNone;
}

Status ChecksumStore::get(std::span<Get> batch) {
  if (auto ok = check(batch, limits(), capabilities(), *this); !ok) return ok;
  get_inner(batch);
  for (auto& entry : batch) {
    if (entry.outcome == Outcome::kOk && first_misfit(entry) != kNone) get_alone(entry);
  }
  for (const auto& entry : batch) {
    if (entry.outcome != Outcome::kCorrupt) continue;
    const auto block = first_misfit(entry);
    return fail(outcome_error(Outcome::kCorrupt, false, *this, block == kNone ? entry.block : block,
                              "its checksum does not fit"));
  }
  return summary(batch, *this);
}

void ChecksumStore::get_alone(Get& entry) {
  Stripes::Guard guard(stripes_, Stripes::of(entry.block, blocks_in(entry.into.size())));
  entry.outcome = Outcome::kPending;
  get_inner({&entry, 1});
  if (entry.outcome == Outcome::kOk && first_misfit(entry) != kNone) entry.outcome = Outcome::kCorrupt;
}

Status ChecksumStore::put(std::span<Put> batch) {
  if (auto ok = check(batch, limits(), capabilities(), *this); !ok) return ok;
  std::uint64_t stripes = 0;
  for (auto& entry : batch) stripes |= Stripes::of(entry.block, blocks_in(entry.from.size()));
  Stripes::Guard guard(stripes_, stripes);
  std::vector<Sum> sums;
  std::vector<Put> entries;
  for (auto& entry : batch) {
    if (!prepare(entry.block, blocks_in(entry.from.size()))) {
      entry.outcome = Outcome::kNoSpace;
      continue;
    }
    entries.push_back(entry);
    for (std::size_t at = 0; at < entry.from.size(); at += block_bytes_) {
      sums.push_back(sum_of(entry.from.subspan(at, block_bytes_)));
    }
  }
  put_inner(entries, sums);
  auto next = entries.begin();
  for (auto& entry : batch) {
    if (entry.outcome == Outcome::kNoSpace) continue;
    entry.outcome = next->outcome;
    entry.version = next->version;
    ++next;
  }
  return summary(batch, *this);
}

namespace {

// The sums are in memory, 16 bytes a block, and blocks keep their numbers.
class ScratchChecksums final : public ChecksumStore {
 public:
  using ChecksumStore::ChecksumStore;

 private:
  void get_inner(std::span<Get> batch) override { (void)inner_->get(batch).has_value(); }

  bool prepare(std::uint64_t first, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      if (table_.make(first + i) == nullptr) return false;
    }
    return true;
  }

  void put_inner(std::span<Put> entries, std::span<const Sum> sums) override {
    (void)inner_->put(entries).has_value();
    for (const auto& entry : entries) {
      for (std::size_t i = 0; i < blocks_in(entry.from.size()); ++i) remember(entry.block + i, sums[i], entry.outcome);
      sums = sums.subspan(blocks_in(entry.from.size()));
    }
  }

  void remember(std::uint64_t block, const Sum& sum, Outcome outcome) {
    if (outcome == Outcome::kConflict) return;
    std::scoped_lock lock(doubts_lock_);
    if (outcome != Outcome::kOk) {
      // The old bytes or the new ones: nobody knows, and whichever they are, they are right.
      doubts_.emplace_back(block, sum);
      return;
    }
    table_.find(block)->set(sum);
    if (!doubts_.empty()) std::erase_if(doubts_, [&](const auto& doubt) { return doubt.first == block; });
  }

  bool fits(std::uint64_t block, const Sum& sum) const override {
    const auto* record = table_.find(block);
    if (record != nullptr && record->get() == sum) return true;
    std::scoped_lock lock(doubts_lock_);
    return std::ranges::any_of(doubts_, [&](const auto& doubt) { return doubt.first == block && doubt.second == sum; });
  }

  BlockTable<SumRecord> table_;
  mutable ForkLock doubts_lock_;
  std::vector<std::pair<std::uint64_t, Sum>> doubts_;  // rare: writes that failed or whose answer never came
};

}  // namespace

std::unique_ptr<Store> make_scratch_checksums(std::unique_ptr<Store> inner) {
  return std::make_unique<ScratchChecksums>(std::move(inner));
}

StoreResult open_checksum(const OpenInner& open_inner, const Parameters&, const StoreOptions& options) {
  auto inner = open_inner(options);
  if (!inner) return inner;
  if (options.lifetime == Lifetime::kScratch) return make_scratch_checksums(std::move(*inner));
  if (!has((*inner)->capabilities(), Capability::kCounters)) {
    return fail(ErrorCode::kUnavailable, "cannot open the store", "checksum+" + (*inner)->describe(),
                "checksum+ over a kept store needs counters", "put it over file: or lmdb:");
  }
  return make_kept_checksums(std::move(*inner));
}

}  // namespace farheap::store
