// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mem: blocks in this process's own memory. For tests, for measuring the pager alone, and under compress+.
// Neighbouring blocks share a shard, so that a run takes few locks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <new>
#include <unordered_map>

#include "base/mutex.hpp"
#include "base/units.hpp"
#include "store/batch.hpp"
#include "store/contents.hpp"
#include "store/copied_by_fork.hpp"
#include "store/kinds.hpp"

namespace farheap::store {
namespace {

struct Block {
  Version version = 0;
  std::unique_ptr<std::byte[]> bytes;
};

struct Shard {
  base::Mutex mutex;
  std::unordered_map<std::uint64_t, Block> blocks FARHEAP_GUARDED_BY(mutex);
};

class MemStore final : public Store, public CopiedByFork {
 public:
  explicit MemStore(std::size_t block_bytes) {
    limits_ = {.block_bytes = block_bytes,
               .largest_value_bytes = 16 * base::kMiB,
               .largest_batch_bytes = 256 * base::kMiB,
               .largest_batch_operations = 4096,
               .best_run_bytes = 64 * base::kKiB};
  }

  std::string describe() const override { return "mem:"; }
  Capabilities capabilities() const override {
    return static_cast<Capabilities>(Capability::kVersions) | static_cast<Capabilities>(Capability::kCounters) |
           static_cast<Capabilities>(Capability::kLinearisable) | static_cast<Capabilities>(Capability::kSparse) |
           static_cast<Capabilities>(Capability::kForks);  // the child has a copy
  }
  Limits limits() const override { return limits_; }

  Status get(std::span<Get> batch) override {
    if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
    for (auto& entry : batch) {
      entry.outcome = Outcome::kOk;
      const std::size_t count = entry.into.size() / limits_.block_bytes;
      for (std::size_t i = 0; i < count && entry.outcome == Outcome::kOk; ++i) get_one(entry, i);
    }
    return {};
  }

  Outcome get_part(std::uint64_t block, std::size_t offset, std::span<std::byte> into) override {
    auto& shard = shard_of(block);
    base::LockGuard lock(shard.mutex);
    const auto found = shard.blocks.find(block);
    if (found == shard.blocks.end()) return Outcome::kAbsent;
    std::memcpy(into.data(), found->second.bytes.get() + offset, into.size());
    return Outcome::kOk;
  }

  // Each block lies by itself. Other blocks of the shard come and go meanwhile: those do not move it.
  const std::byte* find_in_memory(std::uint64_t first, std::size_t count) override {
    if (count != 1) return nullptr;
    auto& shard = shard_of(first);
    base::LockGuard lock(shard.mutex);
    const auto found = shard.blocks.find(first);
    return found == shard.blocks.end() ? nullptr : found->second.bytes.get();
  }

  Status put(std::span<Put> batch) override {
    if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
    for (auto& entry : batch) {
      entry.outcome = Outcome::kOk;
      const std::size_t count = entry.from.size() / limits_.block_bytes;
      for (std::size_t i = 0; i < count && entry.outcome == Outcome::kOk; ++i) put_one(entry, i);
    }
    return summary(batch, *this);
  }

  Status erase(std::uint64_t first, std::uint64_t count) override {
    if (count > 64 * kShards * kNeighbours) return erase_by_walking(first, count);
    for (std::uint64_t block = first; block - first < count; ++block) {
      auto& shard = shard_of(block);
      base::LockGuard lock(shard.mutex);
      blocks_.fetch_sub(shard.blocks.erase(block));
    }
    return {};
  }

  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override {
    base::LockGuard lock(counters_mutex_);
    auto& value = counters_[std::string(counter)];
    value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(delta));
    return value;
  }

  Status sync() override { return {}; }

  Result<StoreUsage> usage() override { return StoreUsage{blocks_.load(), blocks_.load() * limits_.block_bytes}; }

  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override {
    std::vector<std::uint64_t> numbers;
    for (auto& shard : shards_) {
      base::LockGuard lock(shard.mutex);
      for (const auto& [number, block] : shard.blocks) {
        if (number >= first) numbers.push_back(number);
      }
    }
    std::ranges::sort(numbers);
    std::vector<BlockRun> runs;
    for (const auto number : numbers) add_block(runs, number);
    return runs;
  }

  Result<std::vector<NamedCounter>> counters() override {
    base::LockGuard lock(counters_mutex_);
    std::vector<NamedCounter> all;
    for (const auto& [name, value] : counters_) all.push_back({name, value});
    return all;
  }

 private:
  static constexpr std::size_t kShards = 64;
  static constexpr std::size_t kNeighbours = 16;

  Shard& shard_of(std::uint64_t block) { return shards_[block / kNeighbours % kShards]; }

  void get_one(Get& entry, std::size_t index) {
    auto& shard = shard_of(entry.block + index);
    base::LockGuard lock(shard.mutex);
    const auto found = shard.blocks.find(entry.block + index);
    if (found == shard.blocks.end()) {
      entry.outcome = Outcome::kAbsent;
      entry.version = 0;
      return;
    }
    entry.version = found->second.version;
    if (entry.known == entry.version) {
      entry.outcome = Outcome::kSame;
      return;
    }
    std::memcpy(entry.into.data() + index * limits_.block_bytes, found->second.bytes.get(), limits_.block_bytes);
  }

  void put_one(Put& entry, std::size_t index) {
    auto& shard = shard_of(entry.block + index);
    base::LockGuard lock(shard.mutex);
    const auto found = shard.blocks.find(entry.block + index);
    const Version present = found == shard.blocks.end() ? 0 : found->second.version;
    if (entry.expected && *entry.expected != present) {
      entry.outcome = Outcome::kConflict;
      entry.version = present;
      return;
    }
    Block* block = present != 0 ? &found->second : new_block(shard, entry.block + index);
    if (block == nullptr) {
      entry.outcome = Outcome::kNoSpace;
      return;
    }
    std::memcpy(block->bytes.get(), entry.from.data() + index * limits_.block_bytes, limits_.block_bytes);
    entry.version = block->version = next_version_.fetch_add(1);
  }

  Block* new_block(Shard& shard, std::uint64_t number) FARHEAP_REQUIRES(shard.mutex) try {
    auto bytes = std::make_unique_for_overwrite<std::byte[]>(limits_.block_bytes);
    auto& block = shard.blocks[number];
    block.bytes = std::move(bytes);
    blocks_.fetch_add(1);
    return &block;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }

  Status erase_by_walking(std::uint64_t first, std::uint64_t count) {
    for (auto& shard : shards_) {
      base::LockGuard lock(shard.mutex);
      blocks_.fetch_sub(std::erase_if(shard.blocks, [&](auto& pair) { return pair.first - first < count; }));
    }
    return {};
  }

  // The kernel copies it. (The pager is at rest then: no shard is locked.)
  void before_fork() override {}
  void after_fork_in_parent(bool) override {}
  void after_fork_in_child() override {}

  Limits limits_;
  std::array<Shard, kShards> shards_;
  std::atomic<Version> next_version_{1};
  std::atomic<std::uint64_t> blocks_{0};
  base::Mutex counters_mutex_;
  std::map<std::string, std::int64_t> counters_ FARHEAP_GUARDED_BY(counters_mutex_);
};

}  // namespace

StoreResult open_mem(const std::string& place, const Parameters&, const StoreOptions& options) {
  if (!place.empty()) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the store", "mem:" + place, "memory has no place",
                "write it as mem:");
  }
  if (options.lifetime == Lifetime::kKeep) {
    return fail(ErrorCode::kInvalidArgument, "cannot open the store", "mem:", "memory does not outlive its process",
                "use file: or lmdb: for what is to be kept");
  }
  if (auto ok = check_block_bytes(options.block_bytes, "mem:"); !ok) return fail(std::move(ok.error()));
  return std::make_unique<MemStore>(options.block_bytes);
}

}  // namespace farheap::store
