// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// compress+: every block is compressed on its own and takes as many sectors of 512 bytes of the store below as it
// needs, side by side with others: a map in memory (16 bytes a block) says where. A run is written as one extent, so
// it is one write below, and read back as one. Blocks of zeros take no sectors; what does not shrink is stored as it
// is (recognised by its full number of sectors).
//
// Versions are drawn and compared here. Readers take no lock: they read the place, the bytes, and the place again. A
// block's sectors are reused only after its place has changed, so whoever read them too late sees that and tries
// again.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "store/aligned_buffer.hpp"
#include "store/batch.hpp"
#include "store/block_table.hpp"
#include "store/codec.hpp"
#include "store/decorator.hpp"
#include "store/kinds.hpp"
#include "store/sector_space.hpp"
#include "store/stripes.hpp"

namespace farheap::store {
namespace {

constexpr std::size_t kSector = 512;

// Where a block is. A version of 0 means absent; a place is `first << 16 | count`.
struct Place {
  std::atomic<Version> version;
  std::atomic<std::uint64_t> sectors;
};

struct Seen {
  Version version = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const Seen&) const = default;
};

bool is_zero(std::span<const std::byte> block) {
  return block[0] == std::byte{0} && std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
}

class CompressStore final : public Decorator {
 public:
  CompressStore(std::unique_ptr<Store> inner, std::size_t block_bytes, Codec codec, int level)
      : Decorator("compress", std::move(inner)), codec_(codec), level_(level) {
    const auto below = inner_->limits();
    limits_ = below;
    limits_.block_bytes = block_bytes;
    limits_.largest_value_bytes = std::min(below.largest_value_bytes, std::max(4 * base::kMiB, block_bytes));
    limits_.largest_value_bytes -= limits_.largest_value_bytes % block_bytes;
    limits_.largest_batch_bytes = std::min(below.largest_batch_bytes, 16 * limits_.largest_value_bytes);
  }

  Limits limits() const override { return limits_; }
  // The blocks below are others than those here.
  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override { return Store::runs_from(first); }
  Capabilities capabilities() const override {
    auto all = inner_->capabilities();
    // The map of sectors is in memory: parent and child would each take the same free ones.
    for (auto none :
         {Capability::kManyProcesses, Capability::kManyMachines, Capability::kAtomicBatch, Capability::kForks}) {
      all &= ~static_cast<Capabilities>(none);
    }
    return all | static_cast<Capabilities>(Capability::kVersions) |
           static_cast<Capabilities>(Capability::kLinearisable);
  }

  Status get(std::span<Get> batch) override {
    if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
    std::vector<Get*> left;
    for (auto& entry : batch) left.push_back(&entry);
    while (!left.empty()) left = try_get(left);
    return summary(batch, *this);
  }

  Status put(std::span<Put> batch) override {
    if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
    std::size_t bytes = 0;
    std::uint64_t stripes = 0;
    for (const auto& entry : batch) {
      bytes += entry.from.size() + base::kPageBytes;
      stripes |= Stripes::of(entry.block, blocks_in(entry.from.size()));
    }
    Stripes::Guard guard(stripes_, stripes);
    const AlignedBuffer buffer(bytes);
    if (!buffer.is_there()) {
      for (auto& entry : batch) entry.outcome = Outcome::kFailed;
      return summary(batch, *this, "no memory to compress into");
    }
    std::vector<Packed> packed;
    packed.reserve(batch.size());
    std::size_t at = 0;
    for (auto& entry : batch) {
      if (!may_write(entry)) continue;
      packed.push_back(pack_run(entry, buffer, at));
      at = base::round_up(at + packed.back().sectors * kSector, base::kPageBytes);
    }
    write(packed);
    return summary(batch, *this);
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    const auto end = places_.end();
    if (first >= end || count == 0) return {};
    count = std::min(count, end - first);
    Stripes::Guard guard(stripes_, Stripes::of(first, count));
    for (std::uint64_t block = first; block < first + count; ++block) {
      if (auto* place = places_.find(block)) replace(*place, {});
    }
    return {};
  }

  Result<StoreUsage> usage() override {
    auto usage = inner_->usage();
    if (usage) usage->blocks = blocks_.load();
    return usage;
  }

 private:
  struct Packed {
    Put* entry = nullptr;
    std::vector<std::uint16_t> counts;  // sectors of each block
    std::span<std::byte> bytes;
    std::uint64_t sectors = 0;
    std::uint64_t first = 0;
  };

  std::size_t blocks_in(std::size_t bytes) const { return bytes / limits_.block_bytes; }
  std::uint64_t full() const { return limits_.block_bytes / kSector; }

  Seen look(std::uint64_t block) const {
    const auto* place = places_.find(block);
    if (place == nullptr) return {};
    for (;;) {
      const auto version = place->version.load(std::memory_order_acquire);
      const auto sectors = place->sectors.load(std::memory_order_acquire);
      if (place->version.load(std::memory_order_acquire) == version) {
        return version == 0 ? Seen{} : Seen{version, sectors >> 16, sectors & 0xFFFF};
      }
    }
  }

  // Requires: the block's stripe is held.
  void replace(Place& place, const Seen& by) FARHEAP_REQUIRES(stripes_) {
    const Seen old{place.version.load(), place.sectors.load() >> 16, place.sectors.load() & 0xFFFF};
    if (old.version == 0 && by.version == 0) return;
    // Absent in between, so that nobody pairs one's version with the other's sectors.
    place.version.store(0);
    place.sectors.store(by.first << 16 | by.count);
    place.version.store(by.version);
    if (old.version == 0) blocks_.fetch_add(1);
    if (by.version == 0) blocks_.fetch_sub(1);
    if (old.version != 0) free({old.first, old.count});
  }

  void free(Extent extent) {
    std::optional<Extent> large;
    base::LockGuard lock(space_lock_);
    large = space_.give(extent);
    // Under the lock: once it is dropped, the extent may be taken again.
    if (large) (void)inner_->erase(large->first, large->count).has_value();
  }

  bool may_write(Put& entry) {
    if (entry.block + blocks_in(entry.from.size()) > places_.kBlocks || places_.make(entry.block) == nullptr) {
      entry.outcome = Outcome::kNoSpace;
      return false;
    }
    const auto present = look(entry.block).version;
    if (!entry.expected || *entry.expected == present) return true;
    entry.outcome = Outcome::kConflict;
    entry.version = present;
    return false;
  }

  Packed pack_run(Put& entry, const AlignedBuffer& buffer, std::size_t from) {
    Packed run{.entry = &entry};
    const auto block_bytes = limits_.block_bytes;
    const auto room = buffer.part(from, entry.from.size());
    for (std::size_t at = 0; at < entry.from.size(); at += block_bytes) {
      const auto block = entry.from.subspan(at, block_bytes);
      auto into = room.subspan(run.sectors * kSector);
      std::size_t sectors = 0;
      if (!is_zero(block)) {
        // A sector less than the block, or it is not worth it.
        const auto bytes = pack(codec_, level_, block, into.first(block_bytes - kSector));
        sectors = bytes == 0 ? full() : (bytes + kSector - 1) / kSector;
        if (bytes == 0) {
          std::memcpy(into.data(), block.data(), block_bytes);
        } else {
          std::memset(into.data() + bytes, 0, sectors * kSector - bytes);
        }
      }
      run.counts.push_back(static_cast<std::uint16_t>(sectors));
      run.sectors += sectors;
    }
    run.bytes = room.first(run.sectors * kSector);
    return run;
  }

  void write(std::vector<Packed>& packed) FARHEAP_REQUIRES(stripes_) {
    std::vector<Put> below;
    {
      base::LockGuard lock(space_lock_);
      for (auto& run : packed) {
        if (run.sectors != 0) run.first = space_.take(run.sectors);
      }
    }
    for (const auto& run : packed) {
      if (run.sectors != 0) below.push_back({.block = run.first, .from = run.bytes});
    }
    put_in_pieces(*inner_, below);
    auto next = below.begin();
    for (auto& run : packed) {
      run.entry->outcome = run.sectors == 0 ? Outcome::kOk : (next++)->outcome;
      if (run.entry->outcome == Outcome::kOk) {
        settle(run);
      } else if (run.entry->outcome != Outcome::kUnknown) {
        free({run.first, run.sectors});
      }
    }
  }

  void settle(Packed& run) FARHEAP_REQUIRES(stripes_) {
    std::uint64_t first = run.first;
    std::uint64_t block = run.entry->block;
    for (const auto count : run.counts) {
      Place* place = places_.make(block++);
      if (place == nullptr) {
        run.entry->outcome = Outcome::kNoSpace;
        free({first, count});
      } else {
        run.entry->version = next_version_.fetch_add(1);
        replace(*place, {run.entry->version, first, count});
      }
      first += count;
    }
    if (run.counts.size() != 1) run.entry->version = 0;
  }

  // What one attempt at an entry knows.
  struct Attempt {
    Get* entry;
    std::vector<Seen> seen;
    std::size_t first_read = 0;  // in the reads of the batch
  };
  struct Read {
    std::uint64_t first;
    std::uint64_t count;
    std::size_t at;  // in the buffer
  };

  // Reads what it can; returns the entries whose blocks changed meanwhile.
  std::vector<Get*> try_get(std::span<Get* const> entries) {
    std::vector<Attempt> attempts;
    std::vector<Read> reads;
    std::size_t bytes = 0;
    for (auto* entry : entries) {
      Attempt attempt{.entry = entry, .first_read = reads.size()};
      if (!plan(attempt)) continue;
      for (const auto& seen : attempt.seen) {
        if (seen.count == 0) continue;
        const bool joins = reads.size() > attempt.first_read && reads.back().first + reads.back().count == seen.first &&
                           (reads.back().count + seen.count) * kSector <= inner_->limits().largest_value_bytes;
        if (joins) {
          reads.back().count += seen.count;
        } else {
          bytes = base::round_up(bytes, base::kPageBytes);
          reads.push_back({seen.first, seen.count, bytes});
        }
        bytes += seen.count * kSector;
      }
      attempts.push_back(std::move(attempt));
    }
    const AlignedBuffer buffer(bytes);
    std::vector<Get> below;
    if (buffer.is_there()) {
      for (const auto& read : reads) {
        below.push_back({.block = read.first, .into = buffer.part(read.at, read.count * kSector)});
      }
      get_in_pieces(*inner_, below);
    }
    std::vector<Get*> changed;
    for (auto& attempt : attempts) {
      if (!buffer.is_there()) {
        attempt.entry->outcome = Outcome::kFailed;
      } else if (!finish(attempt, reads, below)) {
        changed.push_back(attempt.entry);
      }
    }
    return changed;
  }

  // False if the answer is known without reading.
  bool plan(Attempt& attempt) {
    auto& entry = *attempt.entry;
    for (std::size_t i = 0; i < blocks_in(entry.into.size()); ++i) {
      attempt.seen.push_back(look(entry.block + i));
      if (attempt.seen.back().version == 0) {
        // Between two versions a block looks absent for a moment: the stripe makes sure.
        Stripes::Guard guard(stripes_, Stripes::of(entry.block + i, 1));
        attempt.seen.back() = look(entry.block + i);
      }
      if (attempt.seen.back().version == 0) {
        entry.outcome = Outcome::kAbsent;
        entry.version = 0;
        return false;
      }
    }
    const auto version = attempt.seen[0].version;
    entry.version = attempt.seen.size() == 1 ? version : 0;
    if (entry.known == 0 || entry.known != version) return true;
    entry.outcome = Outcome::kSame;
    return false;
  }

  // False if the blocks were replaced since they were looked up.
  bool finish(Attempt& attempt, std::span<const Read> reads, std::span<const Get> below) {
    auto& entry = *attempt.entry;
    auto outcome = Outcome::kOk;
    std::size_t read = attempt.first_read;
    std::uint64_t used = 0;  // sectors of this read
    const auto block_bytes = limits_.block_bytes;
    for (std::size_t i = 0; i < attempt.seen.size(); ++i) {
      const auto block = entry.into.subspan(i * block_bytes, block_bytes);
      const auto count = attempt.seen[i].count;
      if (count == 0) {
        std::memset(block.data(), 0, block.size());
        continue;
      }
      if (used == reads[read].count) ++read, used = 0;
      const auto bytes = below[read].into.subspan(used * kSector, count * kSector);
      used += count;
      auto one = below[read].outcome;
      if (one == Outcome::kAbsent) one = Outcome::kCorrupt;  // the map says that it is there
      if (one == Outcome::kOk && count == full()) std::memcpy(block.data(), bytes.data(), block_bytes);
      if (one == Outcome::kOk && count != full() && !unpack(bytes, block)) one = Outcome::kCorrupt;
      outcome = std::max(outcome, one);
    }
    for (std::size_t i = 0; i < attempt.seen.size(); ++i) {
      if (!(look(entry.block + i) == attempt.seen[i])) return false;
    }
    entry.outcome = outcome;
    return true;
  }

  Limits limits_;
  Codec codec_;
  int level_;
  Stripes stripes_;
  BlockTable<Place> places_;
  std::atomic<Version> next_version_{1};
  std::atomic<std::uint64_t> blocks_{0};
  ForkLock space_lock_;
  SectorSpace space_ FARHEAP_GUARDED_BY(space_lock_){256 * base::kKiB / kSector};
};

}  // namespace

StoreResult open_compress(const OpenInner& open_inner, const Parameters& parameters, const StoreOptions& options) {
  auto codec = default_codec();
  if (const auto name = parameters.word("codec", ""); !name.empty()) {
    auto found = find_codec(name);
    if (!found) return parameters.wrong("codec", found.error().why, found.error().remedy);
    codec = *found;
  }
  auto level = parameters.number("level", 1);
  if (!level) return fail(std::move(level.error()));
  if (auto ok = check_level(codec, static_cast<int>(std::min<std::uint64_t>(*level, 100))); !ok) {
    return parameters.wrong("level", ok.error().why, ok.error().remedy);
  }
  if (options.lifetime == Lifetime::kKeep) {
    return fail(ErrorCode::kUnavailable, "cannot open the store", "compress+",
                "where its blocks are is known in memory only, so it cannot be kept",
                "leave compress+ out for what is to outlive the process");
  }
  if (auto ok = check_block_bytes(options.block_bytes, "compress+"); !ok) return fail(std::move(ok.error()));
  StoreOptions below = options;
  below.block_bytes = kSector;
  auto inner = open_inner(below);
  if (!inner) return inner;
  if ((*inner)->limits().block_bytes != kSector || options.block_bytes == kSector) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the store", "compress+" + (*inner)->describe(),
                "blocks must be larger than the sectors of 512 bytes below", "use blocks of 4096 bytes or more");
  }
  return std::make_unique<CompressStore>(std::move(*inner), options.block_bytes, codec, static_cast<int>(*level));
}

}  // namespace farheap::store
