// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map that threads use at once, while commits are made.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <farheap/concurrent_map.hpp>
#include <farheap/containers/offset.hpp>
#include <farheap/containers/std.hpp>
#include <thread>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

using Number = std::uint64_t;
using Counts = concurrent_map<Number, Number>;
using OffsetCounts = concurrent_map<Number, Number, boost::hash<Number>, std::equal_to<>,
                                    offset_allocator<std::pair<const Number, Number>>>;
// Both halves are always the same.
struct Twins {
  Number first = 0, second = 0;
};
using TwinMap = concurrent_map<Number, Twins>;
using TextMap =
    concurrent_map<string, string, hash<string>, std::equal_to<>, scoped_allocator<std::pair<const string, string>>>;

template <class F>
void in_threads(int count, const F& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (auto& thread : threads) thread.join();
}

template <class Map>
class ConcurrentMapTest : public ::testing::Test {
 protected:
  HeapFolder folder;
};
using Maps = ::testing::Types<Counts, OffsetCounts>;
TYPED_TEST_SUITE(ConcurrentMapTest, Maps);

TYPED_TEST(ConcurrentMapTest, EachOfItsCallsDoesWhatItSays) {
  Heap heap = must(Heap::create(this->folder.uri(), kSmall));
  auto& map = *heap.construct<TypeParam>("map")(heap.allocator<std::byte>());
  EXPECT_TRUE(map.empty());
  EXPECT_TRUE(map.insert({1, 10}));
  EXPECT_FALSE(map.insert({1, 11}));
  EXPECT_FALSE(map.try_emplace(1, 12));
  EXPECT_EQ(map.find(1), 10u);
  EXPECT_FALSE(map.insert_or_assign(1, 13));
  EXPECT_TRUE(map.insert_or_assign(2, 20));
  EXPECT_EQ(map.find(1), 13u);
  EXPECT_EQ(map.find(3), std::nullopt);
  EXPECT_TRUE(map.contains(2));
  EXPECT_FALSE(map.contains(3));
  map.edit(3)->second += 30;
  map.edit(3)->second += 3;
  EXPECT_TRUE(map.visit(3, [](auto& entry) { entry.second += 1; }));
  EXPECT_FALSE(map.visit(4, [](auto& entry) { entry.second += 1; }));
  Number seen = 0;
  EXPECT_TRUE(map.visit_const(3, [&](const auto& entry) { seen = entry.second; }));
  EXPECT_EQ(seen, 34u);
  EXPECT_TRUE(map.access(3));
  EXPECT_FALSE(map.access(4));
  EXPECT_EQ(map.size(), 3u);
  EXPECT_EQ(map.erase(2), 1u);
  EXPECT_EQ(map.erase(2), 0u);
  map.reserve(1000);
  Number sum = 0;
  map.for_each([&](auto& entry) { sum += entry.second++; });
  std::as_const(map).for_each([&](const auto& entry) { sum += entry.second; });
  EXPECT_EQ(sum, 2 * (13u + 34u) + 2u);
  EXPECT_EQ(map.erase_if([](const auto& entry) { return entry.first == 1; }), 1u);
  EXPECT_EQ(map.size(), 1u);
  map.clear();
  EXPECT_TRUE(map.empty());
}

TYPED_TEST(ConcurrentMapTest, NoIncrementIsLostBesideCommits) {
  constexpr int kThreads = 4;
  constexpr Number kRounds = 4000, kKeys = 97;
  {
    Heap heap = must(Heap::create(this->folder.uri(), kSmall));
    auto& counts = *heap.construct<TypeParam>("counts")(heap.allocator<std::byte>());
    std::atomic<bool> done{false};
    std::thread committer([&] {
      do {
        ASSERT_TRUE(heap.commit());
      } while (!done);
    });
    in_threads(kThreads, [&](int thread) {
      for (Number i = 0; i < kRounds; ++i) {
        counts.edit(i % kKeys)->second += 1;
        counts.try_emplace(1000 + thread * kRounds + i, i);  // the tables grow meanwhile
        EXPECT_GE(counts.find(i % kKeys), 1u);
      }
    });
    done = true;
    committer.join();
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = must(Heap::open(this->folder.uri(), kSmall));
  const auto& counts = *heap.find<TypeParam>("counts");
  EXPECT_EQ(counts.size(), kKeys + kThreads * kRounds);
  Number total = 0;
  for (Number key = 0; key < kKeys; ++key) total += counts.find(key).value_or(0);
  EXPECT_EQ(total, kThreads * kRounds);
  EXPECT_EQ(counts.find(1000 + 3 * kRounds + 7), 7u);
}

// What a commit takes in is opened beside the writers' last state: whole entries, whole tables.
TEST(ConcurrentMap, EveryCommitHasWholeEntriesOnly) {
  HeapFolder folder;
  constexpr int kSnapshots = 8;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    auto& map = *heap.construct<TwinMap>("twins")(heap.allocator<std::byte>());
    std::atomic<bool> done{false};
    std::thread committer([&] {
      for (int i = 0; i < kSnapshots; ++i) EXPECT_TRUE(heap.snapshot("s" + std::to_string(i)));
      done = true;
    });
    in_threads(3, [&](int thread) {
      for (Number i = 0; !done; ++i) {
        const Number key = i * 7919 % 5000 + 5000u * static_cast<Number>(thread % 2);
        map.visit(key, [&](auto& entry) {
          entry.second.first += i;
          std::this_thread::yield();
          entry.second.second += i;
        });
        map.insert_or_assign(key, Twins{i, i});
        if (i % 3 == 0) map.erase(key);
      }
    });
    committer.join();
  }
  for (int i = 0; i < kSnapshots; ++i) {
    Heap heap = must(Heap::open_read_only(folder.uri() + "@s" + std::to_string(i), kSmall));
    const auto& map = *heap.find<TwinMap>("twins");
    std::size_t entries = 0, unequal = 0, lost = 0;
    map.for_each([&](const auto& entry) {
      ++entries;
      unequal += entry.second.first != entry.second.second;
    });
    for (Number key = 0; key < 10'000; ++key) lost += map.contains(key);
    EXPECT_EQ(unequal, 0u) << i;
    EXPECT_EQ(map.size(), entries) << i;
    EXPECT_EQ(lost, entries) << i;
  }
}

// A process that ends in the middle of a visit, after a commit from within it.
void commit_and_end_while_locked(const std::string& uri) {
  Heap heap = must(Heap::create(uri, kSmall));
  auto& map = *heap.construct<Counts>("map")(heap.allocator<std::byte>());
  map.insert({1, 1});
  std::atomic<bool> inside{false};
  std::thread reader([&] {
    map.visit_const(1, [&](const auto&) {
      inside = true;
      std::this_thread::sleep_for(std::chrono::hours(1));
    });
  });
  while (!inside) std::this_thread::yield();
  _exit(heap.commit() ? 0 : 1);
}

TEST(ConcurrentMap, ALockHeldAtTheCommitIsFreeInTheNextRun) {
  HeapFolder folder;
  const pid_t child = fork();
  if (child == 0) commit_and_end_while_locked(folder.uri());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  auto& map = *heap.find<Counts>("map");
  map.edit(1)->second += 1;
  EXPECT_EQ(map.find(1), 2u);
}

TEST(ConcurrentMap, OneMapIsUsedInsideOfAnother) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  // Many, so that some of them share whatever is chosen by an address.
  std::vector<Counts*> maps;
  for (int i = 0; i < 200; ++i) maps.push_back(heap.construct<Counts>(anonymous_instance)(heap.allocator<std::byte>()));
  in_threads(3, [&](int) {
    for (std::size_t i = 0; i + 1 < maps.size(); ++i) {
      const auto outer = maps[i]->edit(7);
      outer->second += 1;
      maps[i + 1]->edit(7)->second += 1;
    }
  });
  EXPECT_EQ(maps.front()->find(7), 3u);
  EXPECT_EQ(maps[1]->find(7), 6u);
  for (Counts* const map : maps) EXPECT_TRUE(heap.destroy_ptr(map));
  ASSERT_TRUE(heap.commit());
}

TEST(ConcurrentMap, TextIsFoundWithoutACopyAndItsValuesAreInTheHeap) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto& map = *heap.construct<TextMap>("map")(heap.allocator<std::byte>());
  const string key("a key longer than a short string holds", heap.allocator<char>());
  map.try_emplace(key, "a value longer than a short string holds");
  EXPECT_TRUE(map.visit(std::string_view("a key longer than a short string holds"), [&](auto& entry) {
    EXPECT_TRUE(heap.owns(entry.first.data()));
    EXPECT_TRUE(heap.owns(entry.second.data()));
  }));
  EXPECT_EQ(map.erase(std::string_view("another")), 0u);
}

TEST(ConcurrentMap, APauseIsTakenSeveralTimesOver) {
  HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto& map = *heap.construct<Counts>("map")(heap.allocator<std::byte>());
  std::atomic<bool> paused{false}, committed{false};
  std::thread committer([&] {
    while (!paused) std::this_thread::yield();
    EXPECT_TRUE(heap.commit());
    committed = true;
  });
  {
    const auto outer = heap.pause();
    paused = true;
    for (int i = 0; i < 1000; ++i) {
      const auto inner = heap.pause();
      map.edit(1)->second += 1;  // goes on although a commit waits
    }
    EXPECT_FALSE(committed);
  }
  committer.join();
  EXPECT_EQ(map.find(1), 1000u);
}

}  // namespace
}  // namespace farheap::testing
