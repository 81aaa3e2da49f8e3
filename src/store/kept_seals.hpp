// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Seals of a kept store (format 1): checksum+ and encrypt+ over it. A record is a seal and the one before it. Blocks
// come in groups of as many as a block holds records; each group is preceded by a side block of the inner store. So
// block B is inner block B + B / per_group + 1, and inner block G * (per_group + 1) holds the records of group G.
// Side blocks stay when their blocks are erased. Two counters of the inner store say how many groups there may be
// ("checksum.groups") and how many side blocks there are ("checksum.sides").
//
// Crashes: a side block is written before the blocks it tells of, so that after a crash either of its two seals may be
// the right one; sync() leaves only the newer. Who writes such a block again looks first which of them is right, and
// keeps that one beside the new: the other would push it out, and be no better after a second crash. After a power
// loss, blocks that were written since the last sync() may be reported corrupt that are merely old or new.
//
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "store/block_table.hpp"
#include "store/contents.hpp"
#include "store/sealed_store.hpp"

namespace farheap::store {

template <class Sealer>
class KeptSeals final : public SealedStore<Sealer> {
 public:
  using typename SealedStore<Sealer>::Seal;

  KeptSeals(std::unique_ptr<Store> inner, Sealer sealer)
      : SealedStore<Sealer>(std::move(inner), std::move(sealer)), per_group_(block_bytes_ / (2 * sizeof(Seal))) {}

  // The seals are held by this process.
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
    if (auto ok = leave_one_seal(); !ok) return ok;
    return inner_->sync();
  }

  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override {
    std::vector<BlockRun> runs;
    std::uint64_t from = inner_block(first);
    do {  // side blocks alone are none
      auto below = inner_->runs_from(from);
      if (!below || below->empty()) return below;
      for (const BlockRun& run : *below) {
        for (std::uint64_t inner = run.first; inner < run.first + run.count; ++inner) {
          if (inner % (per_group_ + 1) != 0) add_block(runs, inner - inner / (per_group_ + 1) - 1);
        }
      }
      from = below->back().first + below->back().count;
    } while (runs.empty());
    return runs;
  }

  Result<std::vector<NamedCounter>> counters() override {
    auto all = inner_->counters();
    if (all) std::erase_if(*all, [&](const auto& one) { return one.name == kGroups || one.name == kSides; });
    return all;
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
  using SealedStore<Sealer>::block_bytes_;
  using SealedStore<Sealer>::blocks_in;
  using SealedStore<Sealer>::inner_;
  using SealedStore<Sealer>::stripes_;

  struct Pair {
    SealRecord<Seal> now, before;
  };
  struct Group {
    enum State : std::uint8_t { kNotRead = 0, kAbsent, kClean, kTwoSeals };
  };

  const std::string kGroups = std::string(Sealer::kName) + ".groups";
  const std::string kSides = std::string(Sealer::kName) + ".sides";

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

  // Makes sure that the seals of these blocks are in memory. False if they cannot be read.
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
    base::LockGuard lock(groups_lock_);
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
      Seal seals[2];
      std::memcpy(seals, bytes.data() + i * sizeof seals, sizeof seals);
      if (seals[0] == Seal{} && seals[1] == Seal{}) continue;
      auto* record = table_.make(group * per_group_ + i);
      if (record == nullptr) return false;
      record->now.set(seals[0]);
      record->before.set(seals[1]);
      two = two || !(seals[1] == Seal{});
    }
    state->store(two ? Group::kTwoSeals : Group::kClean, std::memory_order_release);
    return true;
  }

  bool prepare(std::uint64_t first, std::size_t count) override FARHEAP_REQUIRES(stripes_) {
    if (!read_groups(first, count)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (table_.make(first + i) == nullptr) return false;
    }
    return count_groups(first, count);
  }

  // Before the first side block of a group is written, the counters tell of it.
  bool count_groups(std::uint64_t first, std::uint64_t count) FARHEAP_REQUIRES(stripes_) {
    base::LockGuard lock(groups_lock_);
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

  Status write_sides(std::span<const std::uint64_t> groups) FARHEAP_REQUIRES(groups_lock_) {
    std::vector<std::byte> bytes(groups.size() * block_bytes_);
    std::vector<Put> sides;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::span<std::byte> side = std::span(bytes).subspan(i * block_bytes_, block_bytes_);
      for (std::uint64_t j = 0; j < per_group_; ++j) {
        const auto* record = table_.find(groups[i] * per_group_ + j);
        if (record == nullptr) continue;
        const Seal seals[2] = {record->now.get(), record->before.get()};
        std::memcpy(side.data() + j * sizeof seals, seals, sizeof seals);
      }
      sides.push_back({.block = side_block(groups[i]), .from = side});
    }
    put_in_pieces(*inner_, sides);
    for (const auto& side : sides) {
      if (side.outcome != Outcome::kOk) {
        return fail(ErrorCode::kIo, "cannot write the seals of blocks", this->describe(), "the store below refused");
      }
    }
    return {};
  }

  // A write that failed, or a crash, left two seals: the one that fits becomes the newer, so that it stays. False
  // if it cannot be looked at.
  bool leave_the_right_seal(std::uint64_t block) FARHEAP_REQUIRES(stripes_) {
    auto* record = table_.find(block);
    const Seal before = record->before.get();
    if (before == Seal{}) return true;
    std::vector<std::byte> bytes(block_bytes_);
    Get now{.block = inner_block(block), .into = bytes};
    (void)inner_->get({&now, 1}).has_value();
    if (now.outcome != Outcome::kOk) return now.outcome == Outcome::kAbsent;
    if (!this->sealer_.fits(block, bytes, record->now.get()) && this->sealer_.fits(block, bytes, before)) {
      record->now.set(before);
    }
    return true;
  }

  bool leave_the_right_seals(std::span<const Put> entries) FARHEAP_REQUIRES(stripes_) {
    for (const auto& entry : entries) {
      for (std::size_t i = 0; i < blocks_in(entry.from.size()); ++i) {
        if (!leave_the_right_seal(entry.block + i)) return false;
      }
    }
    return true;
  }

  // The new seals, the old ones behind them, in memory and on the device.
  Status announce(std::span<const Put> entries, std::span<const Seal> seals) FARHEAP_REQUIRES(stripes_) {
    base::LockGuard lock(groups_lock_);
    std::vector<std::uint64_t> groups;
    for (const auto& entry : entries) {
      each_part(entry.block, blocks_in(entry.from.size()), [&](std::uint64_t block, std::uint64_t) {
        groups.push_back(block / per_group_);
        groups_.find(block / per_group_)->store(Group::kTwoSeals);
      });
      for (std::size_t i = 0; i < blocks_in(entry.from.size()); ++i, seals = seals.subspan(1)) {
        auto* record = table_.find(entry.block + i);
        record->before.set(record->now.get());
        record->now.set(seals[0]);
      }
    }
    std::ranges::sort(groups);
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return write_sides(groups);
  }

  void put_inner(std::span<Put> entries, std::span<const Seal> seals) override FARHEAP_REQUIRES(stripes_) {
    if (!leave_the_right_seals(entries) || !announce(entries, seals)) {
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

  bool open_block(std::uint64_t block, std::span<std::byte> bytes) const override {
    const auto* record = table_.find(block);
    if (record == nullptr) return false;
    const Seal seals[2] = {record->now.get(), record->before.get()};
    return this->open_with_one_of(block, bytes, std::span(seals, seals[1] == Seal{} ? 1 : 2));
  }

  Status leave_one_seal() {
    // All stripes: nobody is between announcing and writing.
    Stripes::Guard guard(stripes_, ~std::uint64_t{0});
    base::LockGuard lock(groups_lock_);
    std::vector<std::uint64_t> groups;
    for (std::uint64_t group = 0; group < groups_.end(); ++group) {
      auto* state = groups_.find(group);
      if (state != nullptr && state->load() == Group::kTwoSeals) groups.push_back(group);
    }
    for (std::size_t at = 0; at < groups.size(); at += 256) {
      const auto some = std::span(groups).subspan(at, std::min<std::size_t>(256, groups.size() - at));
      if (auto ok = write_sides(some); !ok) return ok;
      for (const auto group : some) groups_.find(group)->store(Group::kClean);
    }
    return {};
  }

  const std::uint64_t per_group_;
  ForkLock groups_lock_;  // held by who reads or writes a side block
  BlockTable<std::atomic<typename Group::State>> groups_;
  BlockTable<Pair> table_;
};

}  // namespace farheap::store
