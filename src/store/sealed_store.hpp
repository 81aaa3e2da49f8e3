// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What checksum+ and encrypt+ have in common: every block has a seal, made when it is written and asked when it is
// read; a block that its seal does not fit is kCorrupt and never handed out as good. A Sealer makes and asks seals
// (Checksummer, Encrypter):
//
//   Seal                         plain bytes, a multiple of 8; all zeros is no seal
//   kName, kWhy                  of the decorator; why a block is corrupt, in words
//   kRewrites                    what goes below is not what came: seal() fills `into`, open() turns it back
//   start()                      makes the seals of one call of put(): .seal(block, from, into)
//   fits(block, bytes, seal)     looks only
//   open(block, bytes, seal)     makes `bytes` what was put; where it is false, nothing is said of them
//
// Where seals are kept is the difference between a scratch store (scratch_seals.hpp) and a kept one (kept_seals.hpp).
//
// Invariant: who writes holds the stripes of his blocks; readers hold nothing, and take the stripe only to make sure
// that what looks corrupt is not just being written.
//
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "store/aligned_buffer.hpp"
#include "store/batch.hpp"
#include "store/decorator.hpp"
#include "store/stripes.hpp"

namespace farheap::store {

// Readers look at it while it is written; a mix of two seals fits no block, and then the stripe decides.
template <class Seal>
class SealRecord {
 public:
  void set(const Seal& seal) {
    std::uint64_t words[kWords];
    std::memcpy(words, &seal, sizeof seal);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
  }
  [[nodiscard]] Seal get() const {
    std::uint64_t words[kWords];
    for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
    Seal seal;
    std::memcpy(&seal, words, sizeof seal);
    return seal;
  }

 private:
  static constexpr std::size_t kWords = sizeof(Seal) / 8;
  static_assert(sizeof(Seal) % 8 == 0);
  std::array<std::atomic<std::uint64_t>, kWords> words_;
};

template <class Sealer>
class SealedStore : public Decorator {
 public:
  using Seal = typename Sealer::Seal;

  SealedStore(std::unique_ptr<Store> inner, Sealer sealer)
      : Decorator(Sealer::kName, std::move(inner)),
        block_bytes_(inner_->limits().block_bytes),
        sealer_(std::move(sealer)) {}

  Limits limits() const final {
    auto limits = inner_->limits();
    if (Sealer::kRewrites) {  // a batch is held a second time while it is written
      limits.largest_value_bytes = std::min(limits.largest_value_bytes, std::max(4 * base::kMiB, block_bytes_));
      limits.largest_batch_bytes = std::min(limits.largest_batch_bytes, 16 * limits.largest_value_bytes);
    }
    return limits;
  }

  Status get(std::span<Get> batch) final {
    if (auto ok = check(batch, limits(), capabilities(), *this); !ok) return ok;
    get_inner(batch);
    Status corrupt;
    for (auto& entry : batch) {
      std::uint64_t misfit = entry.block;
      if (entry.outcome == Outcome::kOk && open_all(entry) != kNone) misfit = get_alone(entry);
      if (entry.outcome != Outcome::kCorrupt || !corrupt) continue;
      corrupt =
          fail(outcome_error(Outcome::kCorrupt, false, *this, misfit == kNone ? entry.block : misfit, Sealer::kWhy));
    }
    return corrupt ? summary(batch, *this) : corrupt;
  }

  Status put(std::span<Put> batch) final {
    if (auto ok = check(batch, limits(), capabilities(), *this); !ok) return ok;
    std::uint64_t stripes = 0;
    std::size_t bytes = 0;
    for (const auto& entry : batch) {
      stripes |= Stripes::of(entry.block, blocks_in(entry.from.size()));
      bytes += base::round_up(entry.from.size(), base::kPageBytes);
    }
    std::optional<AlignedBuffer> room;
    if (Sealer::kRewrites) room.emplace(bytes);
    if (room && !room->is_there()) {
      for (auto& entry : batch) entry.outcome = Outcome::kFailed;
      return summary(batch, *this, "no memory to write from");
    }
    Stripes::Guard guard(stripes_, stripes);
    std::vector<Seal> seals;
    const auto entries = seal_all(batch, room, seals);
    put_and_answer(batch, entries, seals);
    return summary(batch, *this);
  }

 protected:
  [[nodiscard]] std::size_t blocks_in(std::size_t bytes) const { return bytes / block_bytes_; }

  // Reads as the store below has it; every entry gets its outcome.
  virtual void get_inner(std::span<Get> batch) = 0;
  // False if there is no room for the seals of these blocks. Requires: their stripes are held.
  [[nodiscard]] virtual bool prepare(std::uint64_t first, std::size_t count) FARHEAP_REQUIRES(stripes_) = 0;
  // Requires: the stripes are held; all are prepared; `seals` has one for each block of `entries`, in order.
  virtual void put_inner(std::span<Put> entries, std::span<const Seal> seals) FARHEAP_REQUIRES(stripes_) = 0;
  // Opens the block with whichever seal it may have.
  [[nodiscard]] virtual bool open_block(std::uint64_t block, std::span<std::byte> bytes) const = 0;

  [[nodiscard]] bool open_with_one_of(std::uint64_t block, std::span<std::byte> bytes,
                                      std::span<const Seal> seals) const {
    if (seals.empty()) return false;
    for (; seals.size() > 1; seals = seals.subspan(1)) {
      if (sealer_.fits(block, bytes, seals.front())) break;
    }
    return sealer_.open(block, bytes, seals.front());
  }

  std::size_t block_bytes_;
  Sealer sealer_;
  Stripes stripes_;

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  // The first block that does not fit, or kNone.
  std::uint64_t open_all(const Get& entry) const {
    for (std::size_t i = 0; i < blocks_in(entry.into.size()); ++i) {
      if (!open_block(entry.block + i, entry.into.subspan(i * block_bytes_, block_bytes_))) return entry.block + i;
    }
    return kNone;
  }

  std::uint64_t get_alone(Get& entry) {
    Stripes::Guard guard(stripes_, Stripes::of(entry.block, blocks_in(entry.into.size())));
    entry.outcome = Outcome::kPending;
    get_inner({&entry, 1});
    if (entry.outcome != Outcome::kOk) return kNone;
    const auto misfit = open_all(entry);
    if (misfit != kNone) entry.outcome = Outcome::kCorrupt;
    return misfit;
  }

  // The entries that can be written, as they go below; the others are out of space.
  std::vector<Put> seal_all(std::span<Put> batch, const std::optional<AlignedBuffer>& room, std::vector<Seal>& seals)
      FARHEAP_REQUIRES(stripes_) {
    std::vector<Put> entries;
    auto session = sealer_.start();
    std::size_t used = 0;
    for (auto& entry : batch) {
      if (!prepare(entry.block, blocks_in(entry.from.size()))) {
        entry.outcome = Outcome::kNoSpace;
        continue;
      }
      std::span<std::byte> into;
      if (room) into = room->part(used, entry.from.size());
      used = base::round_up(used + entry.from.size(), base::kPageBytes);
      for (std::size_t at = 0; at < entry.from.size(); at += block_bytes_) {
        seals.push_back(session.seal(entry.block + blocks_in(at), entry.from.subspan(at, block_bytes_),
                                     room ? into.subspan(at, block_bytes_) : into));
      }
      entries.push_back(entry);
      if (room) entries.back().from = into;
    }
    return entries;
  }

  void put_and_answer(std::span<Put> batch, std::vector<Put> entries, std::span<const Seal> seals)
      FARHEAP_REQUIRES(stripes_) {
    put_inner(entries, seals);
    auto next = entries.begin();
    for (auto& entry : batch) {
      if (entry.outcome == Outcome::kNoSpace) continue;
      entry.outcome = next->outcome;
      entry.version = next->version;
      ++next;
    }
  }
};

}  // namespace farheap::store
