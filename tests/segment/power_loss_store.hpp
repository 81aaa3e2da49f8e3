// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store in memory that knows what of it would be left if the power failed now: all that was there at the last sync(),
// and of what came after anything, in any order, whole or in part.
//
// Its sync() can be made to fail, and then does what Linux does: of what was written since the last good one, some is
// lost for ever, though it can be read for a while; the rest waits for the next sync(), which does not say a word.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "farheap/store.hpp"
#include "test_pages.hpp"

namespace farheap::segment {

class PowerLossStore final : public Store {
 public:
  using Block = std::array<std::byte, kPageBytes>;
  using Image = std::map<std::uint64_t, std::shared_ptr<const Block>>;

  PowerLossStore() = default;
  explicit PowerLossStore(const Image& image) : now_(image), durable_(image) {}

  PowerLossStore(const PowerLossStore& other)  // as it is now, for another process
      : now_(other.now_), durable_(other.durable_), since_(other.since_), unsafe_(other.unsafe_) {}

  // Of the syncs that come, one in so many fails; 0: none. What it loses is chosen by `chance`.
  unsigned one_sync_fails_of = 0;
  bool cache_stays = false;  // what was lost can be read as long as nobody calls drop_cache()
  std::mt19937_64 chance{7};
  [[nodiscard]] unsigned failed_syncs() const { return failed_syncs_; }
  // What was lost and could still be read (it was in the page cache) cannot be read any more.
  void drop_cache() {
    for (const std::uint64_t number : unsafe_) show_durable(number);
    unsafe_.clear();
  }

  // The block of the last change.
  [[nodiscard]] std::uint64_t last_changed() const { return last_changed_; }

  // Called after every change; `lost()` says what would be left.
  std::function<void()> changed = [] {};

  // How what was not synced is left: all of it, or some of it, torn in sectors of 512 bytes.
  enum class Left { kAll, kSome, kNone };
  [[nodiscard]] Image lost(Left left, std::mt19937_64& random) const {
    Image image = durable_;
    if (left == Left::kNone) return image;
    for (const auto& [number, block] : since_) {
      if (left == Left::kAll || random() % 4 != 0) {
        if (left == Left::kAll || random() % 4 != 0 || block == nullptr) {
          set(image, number, block);
        } else {
          set(image, number, torn(image, number, *block, random));
        }
      }
    }
    return image;
  }

  std::string describe() const override { return "power-loss:"; }
  Capabilities capabilities() const override {
    return static_cast<Capabilities>(Capability::kDurable) | static_cast<Capabilities>(Capability::kSparse);
  }
  Limits limits() const override {
    return {.block_bytes = kPageBytes,
            .largest_value_bytes = 1 << 20,
            .largest_batch_bytes = 8 << 20,
            .largest_batch_operations = 256,
            .best_run_bytes = 1 << 18};
  }
  Status get(std::span<Get> batch) override {
    for (Get& one : batch) {
      one.outcome = Outcome::kOk;
      for (std::size_t i = 0; i < one.into.size() / kPageBytes; ++i) {
        const auto there = now_.find(one.block + i);
        if (there == now_.end()) {
          one.outcome = Outcome::kAbsent;
        } else {
          std::memcpy(one.into.data() + i * kPageBytes, there->second->data(), kPageBytes);
        }
      }
    }
    return {};
  }
  Status put(std::span<Put> batch) override {
    for (Put& one : batch) {
      for (std::size_t i = 0; i < one.from.size() / kPageBytes; ++i) {
        auto block = std::make_shared<Block>();
        std::memcpy(block->data(), one.from.data() + i * kPageBytes, kPageBytes);
        note(one.block + i, std::move(block));
      }
      one.outcome = Outcome::kOk;
    }
    return {};
  }
  Status erase(std::uint64_t first, std::uint64_t count) override {
    std::vector<std::uint64_t> there;
    for (const auto& [block, bytes] : now_) {
      if (block - first < count) there.push_back(block);
    }
    for (const std::uint64_t block : there) note(block, nullptr);
    return {};
  }
  Result<std::int64_t> add(std::string_view, std::int64_t) override {
    return fail(ErrorCode::kUnavailable, "cannot count", describe(), "no counters");
  }
  Status sync() override {
    if (one_sync_fails_of != 0 && chance() % one_sync_fails_of == 0) return fail_sync();
    for (const auto& [number, block] : since_) set(durable_, number, block);
    since_.clear();
    changed();
    return {};
  }
  Result<StoreUsage> usage() override { return StoreUsage{.blocks = now_.size(), .space_bytes = 0}; }

 private:
  using BlockPointer = std::shared_ptr<const Block>;
  static void set(Image& image, std::uint64_t number, const BlockPointer& block) {
    if (block == nullptr) {
      image.erase(number);
    } else {
      image[number] = block;
    }
  }
  static BlockPointer torn(const Image& image, std::uint64_t number, const Block& block, std::mt19937_64& random) {
    auto mix = std::make_shared<Block>();
    if (const auto there = image.find(number); there != image.end()) *mix = *there->second;
    for (std::size_t sector = 0; sector < kPageBytes; sector += 512) {
      if (random() % 2 != 0) std::memcpy(mix->data() + sector, block.data() + sector, 512);
    }
    return mix;
  }
  void show_durable(std::uint64_t number) {
    const auto there = durable_.find(number);
    set(now_, number, there == durable_.end() ? nullptr : there->second);
  }
  Status fail_sync() {
    std::map<std::uint64_t, bool> is_lost;
    for (const auto& [number, block] : since_) {
      if (is_lost.emplace(number, chance() % 3 != 0).second && is_lost[number]) unsafe_.insert(number);
    }
    std::erase_if(since_, [&](const auto& one) { return is_lost[one.first]; });
    std::erase_if(unsafe_, [&](std::uint64_t number) {
      const bool goes = !cache_stays && chance() % 2 == 0;
      if (goes) show_durable(number);
      return goes;
    });
    ++failed_syncs_;
    changed();
    return fail(ErrorCode::kIo, "cannot sync", describe(), "as asked: what was written since the last one may be lost");
  }
  void note(std::uint64_t number, BlockPointer block) {
    unsafe_.erase(number);
    last_changed_ = number;
    set(now_, number, block);
    since_.emplace_back(number, std::move(block));
    changed();
  }

  Image now_, durable_;
  std::vector<std::pair<std::uint64_t, BlockPointer>> since_;
  std::set<std::uint64_t> unsafe_;  // lost, and still shown
  unsigned failed_syncs_ = 0;
  std::uint64_t last_changed_ = 0;
};

}  // namespace farheap::segment
