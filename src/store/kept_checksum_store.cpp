// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// checksum+ over a kept store (format 1). Blocks come in groups of block_bytes / 32; each group is preceded by a side
// block of the inner store. So block B is inner block B + B / per_group + 1, and inner block G * (per_group + 1) holds
// the records of group G: 32 bytes each, little-endian: low and high half of the sum, then of the sum before it.
// Side blocks stay when their blocks are erased. Two counters of the inner store say how many groups there may be
// ("checksum.groups") and how many side blocks there are ("checksum.sides").
//
// Crashes: a side block is written before the blocks it tells of, so that after a crash either of its two sums may be
// the right one; sync() leaves only the newer. After a power loss, blocks that were written since the last sync() may
// be reported corrupt that are merely old or new.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "store/block_table.hpp"
#include "store/checksum_store.hpp"

namespace farheap::store {
namespace {

struct Pair {
  SumRecord now, before;
};

enum class Group : std::uint8_t { kNotRead = 0, kAbsent, kClean, kTwoSums };

class KeptChecksums final : public ChecksumStore {
 public:
  explicit KeptChecksums(std::unique_ptr<Store> inner)
      : ChecksumStore(std::move(inner)), per_group_(block_bytes_ / sizeof(Pair)) {}

  // The sums are held by this process.
  Capabilities capabilities() const override {
    return inner_->capabilities() & ~static_cast<Capabilities>(Capability::kManyProcesses) &
           ~static_cast<Capabilities>(Capability::kManyMachines) &
           ~static_cast<Capabilities>(Capability::kAtomicBatch) & ~static_cast<Capabilities>(Capability::kForks);
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    auto groups = inner_->add(kGroups, 0);
    if (!groups) return fail(std::move(groups.error()));
    const auto end = static_cast<std::uint64_t>(*groups) * per_group_;
    if (first >= end || count == 0) return {};
    count = std::min(count, end - first);
    Stripes::Guard guard(stripes_, Stripes::of(first, count));
    Status result;
    each_part(first, count, [&](std::uint64_t block, std::uint64_t blocks) {
      if (auto ok = inner_->erase(inner_block(block), blocks); !ok && result) result = std::move(ok);
    });
    return result;
  }

  Status sync() override {
    if (auto ok = leave_one_sum(); !ok) return ok;
    return inner_->sync();
  }

  Result<StoreUsage> usage() override {
    auto usage = inner_->usage();
    if (!usage) return usage;
    auto sides = inner_->add(kSides, 0);
    if (!sides) return fail(std::move(sides.error()));
    usage->blocks -= std::min(usage->blocks, static_cast<std::uint64_t>(*sides));
    return usage;
  }

 private:
  static constexpr std::string_view kGroups = "checksum.groups";
  static constexpr std::string_view kSides = "checksum.sides";

  std::uint64_t inner_block(std::uint64_t block) const { return block + block / per_group_ + 1; }
  std::uint64_t side_block(std::uint64_t group) const { return group * (per_group_ + 1); }

  // Calls visit(block, count) for the part of a run in each group.
  template <class Visit>
  void each_part(std::uint64_t first, std::uint64_t count, Visit visit) const {
    while (count != 0) {
      const std::uint64_t here = std::min(count, per_group_ - first % per_group_);
      visit(first, here);
      first += here, count -= here;
    }
  }

  void get_inner(std::span<Get> batch) override {
    std::vector<Get> parts;
    for (auto& entry : batch) {
      if (!read_groups(entry.block, blocks_in(entry.into.size()))) {
        entry.outcome = Outcome::kFailed;
        continue;
      }
      each_part(entry.block, blocks_in(entry.into.size()), [&](std::uint64_t block, std::uint64_t count) {
        parts.push_back({.block = inner_block(block),
                         .into = entry.into.subspan((block - entry.block) * block_bytes_, count * block_bytes_),
                         .known = entry.known});
      });
    }
    get_in_pieces(*inner_, parts);
    gather(batch, parts, [](const Get& entry) { return entry.into.size(); });
  }

  // The worst outcome of its parts is the entry's.
  template <class Entry, class Size>
  void gather(std::span<Entry> batch, const std::vector<Entry>& parts, Size size) const {
    auto next = parts.begin();
    for (auto& entry : batch) {
      if (entry.outcome == Outcome::kFailed) continue;
      for (std::size_t left = size(entry); left != 0; ++next) {
        entry.outcome = std::max(entry.outcome, next->outcome);
        entry.version = next->version;
        left -= size(*next);
      }
      if (size(entry) != block_bytes_) entry.version = 0;
    }
  }

  // Makes sure that the sums of these blocks are in memory. False if they cannot be read.
  bool read_groups(std::uint64_t first, std::uint64_t count) {
    bool ok = true;
    each_part(first, count, [&](std::uint64_t block, std::uint64_t) { ok = ok && read_group(block / per_group_); });
    return ok;
  }

  bool read_group(std::uint64_t group) {
    if (group >= BlockTable<Pair>::kBlocks / per_group_) return true;  // too far away to be there
    auto* state = groups_.make(group);
    if (state == nullptr) return false;
    if (state->load(std::memory_order_acquire) != Group::kNotRead) return true;
    std::scoped_lock lock(groups_lock_);
    if (state->load() != Group::kNotRead) return true;
    std::vector<std::byte> bytes(block_bytes_);
    Get side{.block = side_block(group), .into = bytes};
    (void)inner_->get({&side, 1}).has_value();
    if (side.outcome != Outcome::kOk && side.outcome != Outcome::kAbsent) return false;
    if (side.outcome == Outcome::kAbsent) {
      state->store(Group::kAbsent, std::memory_order_release);
      return true;
    }
    bool two = false;
    for (std::uint64_t i = 0; i < per_group_; ++i) {
      std::uint64_t words[4];
      std::memcpy(words, bytes.data() + i * sizeof(Pair), sizeof words);
      if ((words[0] | words[1] | words[2] | words[3]) == 0) continue;
      auto* record = table_.make(group * per_group_ + i);
      if (record == nullptr) return false;
      record->now.set({words[0], words[1]});
      record->before.set({words[2], words[3]});
      two = two || words[2] != 0 || words[3] != 0;
    }
    state->store(two ? Group::kTwoSums : Group::kClean, std::memory_order_release);
    return true;
  }

  bool prepare(std::uint64_t first, std::size_t count) override {
    if (!read_groups(first, count)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (table_.make(first + i) == nullptr) return false;
    }
    return count_groups(first, count);
  }

  // Before the first side block of a group is written, the counters tell of it.
  bool count_groups(std::uint64_t first, std::uint64_t count) {
    std::scoped_lock lock(groups_lock_);
    bool ok = true;
    each_part(first, count, [&](std::uint64_t block, std::uint64_t) {
      const auto group = block / per_group_;
      auto* state = groups_.find(group);
      if (!ok || state->load() != Group::kAbsent) return;
      const auto end = inner_->add(kGroups, 0);
      const auto more = static_cast<std::int64_t>(group + 1) - end.value_or(0);
      ok = end && (more <= 0 || inner_->add(kGroups, more)) && inner_->add(kSides, 1);
      // The side block itself is there at once, so that the counters are never ahead of it for long.
      std::vector<std::byte> empty(block_bytes_);
      Put side{.block = side_block(group), .from = empty};
      ok = ok && inner_->put({&side, 1});
      if (ok) state->store(Group::kClean);
    });
    return ok;
  }

  // Requires: groups_lock_ is held.
  Status write_sides(std::span<const std::uint64_t> groups) {
    std::vector<std::byte> bytes(groups.size() * block_bytes_);
    std::vector<Put> sides;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::span<std::byte> side = std::span(bytes).subspan(i * block_bytes_, block_bytes_);
      for (std::uint64_t j = 0; j < per_group_; ++j) {
        const auto* record = table_.find(groups[i] * per_group_ + j);
        if (record == nullptr) continue;
        const Sum now = record->now.get();
        const Sum before = record->before.get();
        const std::uint64_t words[4] = {now.low, now.high, before.low, before.high};
        std::memcpy(side.data() + j * sizeof(Pair), words, sizeof words);
      }
      sides.push_back({.block = side_block(groups[i]), .from = side});
    }
    put_in_pieces(*inner_, sides);
    for (const auto& side : sides) {
      if (side.outcome != Outcome::kOk) {
        return fail(ErrorCode::kIo, "cannot write the checksums", describe(), "the store below refused");
      }
    }
    return {};
  }

  // The new sums, the old ones behind them, in memory and on the device.
  Status announce(std::span<const Put> entries, std::span<const Sum> sums) {
    std::scoped_lock lock(groups_lock_);
    std::vector<std::uint64_t> groups;
    for (const auto& entry : entries) {
      each_part(entry.block, blocks_in(entry.from.size()), [&](std::uint64_t block, std::uint64_t) {
        groups.push_back(block / per_group_);
        groups_.find(block / per_group_)->store(Group::kTwoSums);
      });
      for (std::size_t i = 0; i < blocks_in(entry.from.size()); ++i, sums = sums.subspan(1)) {
        auto* record = table_.find(entry.block + i);
        record->before.set(record->now.get());
        record->now.set(sums[0]);
      }
    }
    std::ranges::sort(groups);
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return write_sides(groups);
  }

  void put_inner(std::span<Put> entries, std::span<const Sum> sums) override {
    if (!announce(entries, sums)) {
      for (auto& entry : entries) entry.outcome = Outcome::kFailed;
      return;
    }
    std::vector<Put> parts;
    for (auto& entry : entries) {
      each_part(entry.block, blocks_in(entry.from.size()), [&](std::uint64_t block, std::uint64_t count) {
        parts.push_back({.block = inner_block(block),
                         .from = entry.from.subspan((block - entry.block) * block_bytes_, count * block_bytes_),
                         .expected = entry.expected});
      });
    }
    put_in_pieces(*inner_, parts);
    gather(entries, parts, [](const Put& entry) { return entry.from.size(); });
    for (const auto& entry : entries) {
      for (std::size_t i = 0; i < blocks_in(entry.from.size()); ++i) {
        auto* record = table_.find(entry.block + i);
        if (entry.outcome == Outcome::kConflict) record->now.set(record->before.get());
        // Otherwise both stay: the old bytes or the new ones, whichever they are, are right.
        if (entry.outcome == Outcome::kOk || entry.outcome == Outcome::kConflict) record->before.set({});
      }
    }
  }

  bool fits(std::uint64_t block, const Sum& sum) const override {
    const auto* record = table_.find(block);
    return record != nullptr && (record->now.get() == sum || record->before.get() == sum);
  }

  Status leave_one_sum() {
    // All stripes: nobody is between announcing and writing.
    Stripes::Guard guard(stripes_, ~std::uint64_t{0});
    std::scoped_lock lock(groups_lock_);
    std::vector<std::uint64_t> groups;
    for (std::uint64_t group = 0; group < groups_.end(); ++group) {
      auto* state = groups_.find(group);
      if (state != nullptr && state->load() == Group::kTwoSums) groups.push_back(group);
    }
    for (std::size_t at = 0; at < groups.size(); at += 256) {
      const auto some = std::span(groups).subspan(at, std::min<std::size_t>(256, groups.size() - at));
      if (auto ok = write_sides(some); !ok) return ok;
      for (const auto group : some) groups_.find(group)->store(Group::kClean);
    }
    return {};
  }

  const std::uint64_t per_group_;
  ForkLock groups_lock_;
  BlockTable<std::atomic<Group>> groups_;
  BlockTable<Pair> table_;
};

}  // namespace

std::unique_ptr<Store> make_kept_checksums(std::unique_ptr<Store> inner) {
  return std::make_unique<KeptChecksums>(std::move(inner));
}

}  // namespace farheap::store
