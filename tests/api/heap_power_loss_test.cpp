// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The power fails while a program works on its heap: whatever of the writes since the last sync() is left, in any order
// and torn at 512 bytes, the heap opens at the last commit that returned, or at the one under way.
//
// FARHEAP_POWER_LOSS=N looks at one of N moments (1: at every write; without it as many as a few seconds allow).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "heap_folder.hpp"
#include "heap_on_store.hpp"
#include "table_work.hpp"
#include "tests/segment/power_loss_store.hpp"

namespace farheap::testing {
namespace {

using segment::PowerLossStore;

struct Loss {
  PowerLossStore::Image image;
  std::uint64_t returned, begun;  // commits, in steps of the work
};

// The handlers of faults write, too.
class LockedStore final : public store::Decorator {
 public:
  explicit LockedStore(Store& below) : Decorator("locked", std::unique_ptr<Store>(&below)) {}
  ~LockedStore() override { (void)inner_.release(); }
  Status get(std::span<Get> batch) override {
    std::lock_guard lock(mutex_);
    return inner_->get(batch);
  }
  Status put(std::span<Put> batch) override {
    std::lock_guard lock(mutex_);
    return inner_->put(batch);
  }
  Status erase(std::uint64_t first, std::uint64_t count) override {
    std::lock_guard lock(mutex_);
    return inner_->erase(first, count);
  }
  Status sync() override {
    std::lock_guard lock(mutex_);
    return inner_->sync();
  }

 private:
  std::mutex mutex_;
};

class HeapPowerLossTest : public ::testing::Test {
 protected:
  HeapPowerLossTest() { touch(folder.file()); }

  // What would have been left at one of `every` writes and syncs, in three ways each.
  std::vector<Loss> record(std::uint64_t every, std::uint64_t steps, std::size_t ballast_bytes) {
    PowerLossStore below;
    const HeapsOn recorded([&](const api::HeapPlace&) { return std::make_unique<LockedStore>(below); });
    Heap heap = must(Heap::create(folder.uri(), kLeast));
    std::vector<Loss> losses;
    std::mt19937_64 random(every);
    std::atomic<std::uint64_t> returned{0}, begun{0};
    below.changed = [&] {
      if (random() % every != 0) return;
      for (const auto kind : {PowerLossStore::Left::kAll, PowerLossStore::Left::kSome, PowerLossStore::Left::kNone}) {
        losses.push_back({below.lost(kind, random), returned, begun});
      }
    };
    auto* const ballast = static_cast<char*>(heap.allocate(ballast_bytes));
    for (std::uint64_t k = 1; k <= steps; ++k) {
      work.step(heap);
      std::fill_n(ballast, ballast_bytes, static_cast<char>(k));
      begun = k;
      if (k % 5 == 0) (void)heap.remove_snapshot("five");
      const Status status = k % 5 == 0 ? heap.snapshot("five") : k % 7 == 0 ? heap.compact() : heap.commit();
      EXPECT_TRUE(status) << status.error().message();
      returned = k;
    }
    below.changed = [] {};
    return losses;
  }

  // Empty, or what is wrong with the heap that is left. `ballast`: what all of that has to be, if it is known.
  std::string look_at(const Loss& loss, char ballast = 0) {
    const auto left = open_store("mem:", {.block_bytes = segment::kPageBytes}).value();
    for (const auto& [number, block] : loss.image) {
      Put put{.block = number, .from = *block};
      if (!left->put({&put, 1})) return "the test's own store";
    }
    const HeapsOn image([&](const api::HeapPlace&) { return std::make_unique<SharedStore>(*left); });
    if (const Status status = Heap::check(folder.uri()); !status) return "check: " + status.error().message();
    if (std::string wrong = look_at_snapshot(); !wrong.empty()) return "five: " + wrong;
    auto heap = Heap::open(folder.uri(), kSmall);
    if (!heap) return heap.error().message();
    const std::uint64_t steps = TableWork::steps_of(*heap);
    if (steps < loss.returned || steps > loss.begun) {
      return std::to_string(steps) + " steps, not " + std::to_string(loss.returned) + " to " +
             std::to_string(loss.begun);
    }
    if (std::string wrong = work.compare(*heap); !wrong.empty()) return wrong;
    if (char** const all = ballast == 0 ? nullptr : heap->find<char*>("ballast"); all != nullptr) {
      if (**all != ballast || std::memcmp(*all, *all + 1, kBallast - 1) != 0) return "the ballast is wrong";
    }
    // And it goes on.
    work.step(*heap);
    if (const Status status = heap->commit(); !status) return "the next commit: " + status.error().message();
    return {};
  }

  std::string look_at_snapshot() {
    auto heap = Heap::open_read_only(folder.uri() + "@five", kSmall);
    if (!heap) return heap.error().code == ErrorCode::kNotFound ? "" : heap.error().message();
    if (TableWork::steps_of(*heap) % 5 != 0) return "it is of another step";
    return work.compare(*heap);
  }

  // Empty, or what is wrong with one of them.
  std::string look_at_all(const std::vector<Loss>& losses) {
    std::uint64_t in_flight = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      in_flight += losses[i].returned != losses[i].begun;
      if (std::string wrong = look_at(losses[i]); !wrong.empty()) {
        return "image " + std::to_string(i) + ", in step " + std::to_string(losses[i].begun) + ": " + wrong;
      }
    }
    std::printf("%zu images, %zu of them in the middle of a commit\n", losses.size(), in_flight);
    return in_flight > losses.size() / 8 ? "" : "nearly all between commits";
  }

  static std::uint64_t every(std::uint64_t otherwise) {
    const char* const wanted = std::getenv("FARHEAP_POWER_LOSS");
    return wanted != nullptr ? std::max<std::uint64_t>(std::strtoull(wanted, nullptr, 10), 1) : otherwise;
  }

  static constexpr std::size_t kBallast = 24_MiB;
  static constexpr HeapOptions kLeast{.memory = 16_MiB, .capacity = 4_GiB};
  const HeapFolder folder;
  const TableWork work;
};

TEST_F(HeapPowerLossTest, EveryImageOpensAtACommit) {
  const std::vector<Loss> losses = record(every(64), 32, 0);
  EXPECT_GT(losses.size(), 60u);
  EXPECT_EQ(look_at_all(losses), "");
}

// Pages are written between commits, too.
TEST_F(HeapPowerLossTest, EveryImageOfAHeapLargerThanMemoryOpensAtACommit) {
  const std::vector<Loss> losses = record(every(1024) * 4, 5, 20_MiB);
  EXPECT_GT(losses.size(), 10u);
  EXPECT_EQ(look_at_all(losses), "");
}

// Linux reports a write that failed once. A commit failed, the next one succeeded, and pages that had left memory
// between them were gone.
TEST_F(HeapPowerLossTest, ACommitAfterAFailedSyncHasThePagesThatHadLeftMemory) {
  PowerLossStore below;
  below.cache_stays = true;
  std::vector<Loss> losses;
  {
    const HeapsOn recorded([&](const api::HeapPlace&) { return std::make_unique<LockedStore>(below); });
    Heap heap = must(Heap::create(folder.uri(), kLeast));
    auto* const ballast = static_cast<char*>(heap.allocate(kBallast));
    heap.construct<char*>("ballast")(ballast);
    std::mt19937_64 random(1);
    for (std::uint64_t k = 1; k <= 4; ++k) {
      work.step(heap);
      std::fill_n(ballast, kBallast, static_cast<char>(k));
      below.one_sync_fails_of = 1;
      EXPECT_FALSE(heap.commit());
      below.one_sync_fails_of = k % 2 == 0 ? 2 : 0;
      Status status = heap.commit();
      for (int i = 0; i < 50 && !status; ++i) status = heap.commit();
      EXPECT_TRUE(status) << status.error().message();
      losses.push_back({below.lost(PowerLossStore::Left::kNone, random), k, k});
    }
    below.one_sync_fails_of = 0;
  }
  EXPECT_GT(below.failed_syncs(), 4u);
  for (const Loss& loss : losses) {
    EXPECT_EQ(look_at(loss, static_cast<char>(loss.returned)), "") << "after commit " << loss.returned;
  }
}

}  // namespace
}  // namespace farheap::testing
