// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a user does with a kept heap: objects, names, containers, and all of it again in the next process' place.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <memory_resource>
#include <numeric>
#include <random>
#include <scoped_allocator>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

template <class T>
using Vector = std::vector<T, allocator<T>>;
using Text = std::basic_string<char, std::char_traits<char>, allocator<char>>;

struct Counted {
  static inline int alive = 0;
  static inline int throw_at = -1;
  int value;
  explicit Counted(int its_value = 7) : value(its_value) {
    if (throw_at >= 0 && alive == throw_at) throw std::runtime_error("as asked");
    ++alive;
  }
  ~Counted() { --alive; }
};

class KeptHeapTest : public ::testing::Test {
 protected:
  HeapFolder folder;
  Heap create(HeapOptions options = kSmall) { return must(Heap::create(folder.uri(), options)); }
  Heap open(HeapOptions options = kSmall) { return must(Heap::open(folder.uri(), options)); }
};

TEST_F(KeptHeapTest, ObjectsAreThereAgain) {
  const int* where = nullptr;
  {
    Heap heap = create();
    int* const answer = heap.construct<int>("answer")(42);
    ASSERT_NE(answer, nullptr);
    EXPECT_TRUE(heap.owns(answer));
    where = answer;
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = open();
  EXPECT_EQ(heap.find<int>("answer"), where);
  EXPECT_EQ(*heap.find<int>("answer"), 42);
  EXPECT_EQ(heap.find<int>("question"), nullptr);
}

TEST_F(KeptHeapTest, WhatWasNotCommittedIsNotThere) {
  {
    Heap heap = create();
    heap.construct<int>("in")(1);
    ASSERT_TRUE(heap.commit());
    heap.construct<int>("out")(2);
    *heap.find<int>("in") = 3;
  }
  Heap heap = open();
  EXPECT_EQ(*heap.find<int>("in"), 1);
  EXPECT_EQ(heap.find<int>("out"), nullptr);
  EXPECT_EQ(heap.statistics().objects, 1u);
}

TEST_F(KeptHeapTest, StandardContainersLiveInIt) {
  using Map = std::map<int, Vector<int>, std::less<>,
                       std::scoped_allocator_adaptor<allocator<std::pair<const int, Vector<int>>>>>;
  {
    Heap heap = create();
    auto* const map = heap.find_or_construct<Map>("map")(heap.allocator<std::byte>());
    for (int i = 0; i < 2000; ++i) (*map)[i % 50].push_back(i);
    ASSERT_TRUE(heap.commit());
  }
  {
    Heap heap = open();
    auto* const map = heap.find_or_construct<Map>("map")(heap.allocator<std::byte>());
    ASSERT_EQ(map->size(), 50u);
    EXPECT_EQ(map->at(7).size(), 40u);
    EXPECT_EQ(map->at(7)[3], 157);
    map->erase(7);
    EXPECT_TRUE(heap.destroy<Map>("map"));
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = open();
  EXPECT_EQ(heap.find<Map>("map"), nullptr);
  EXPECT_EQ(heap.statistics().objects, 0u);
}

TEST_F(KeptHeapTest, MoreThanFitsInMemory) {
  constexpr std::size_t kNumbers = 24_MiB;  // 192 MiB of 32
  {
    Heap heap = create();
    auto* const numbers = heap.construct<Vector<std::uint64_t>>("numbers")(heap.allocator<std::uint64_t>());
    numbers->resize(kNumbers);
    std::iota(numbers->begin(), numbers->end(), 5);
    EXPECT_LE(heap.statistics().memory_bytes, kSmall.memory);
    ASSERT_TRUE(heap.commit());
    for (std::size_t i = 0; i < kNumbers; i += 1000) (*numbers)[i] = 1;
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = open();
  const auto& numbers = *heap.find<Vector<std::uint64_t>>("numbers");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kNumbers; ++i) wrong += numbers[i] != (i % 1000 == 0 ? 1 : i + 5);
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(heap.statistics().bytes_read, 150_MiB);
}

TEST_F(KeptHeapTest, ArraysAndIterators) {
  Heap heap = create();
  int* const same = heap.construct<int>("same")[5](3);
  EXPECT_EQ(std::accumulate(same, same + 5, 0), 15);
  const std::vector<int> values{1, 2, 3, 4};
  int* const each = heap.construct_it<int>("each")[4](values.begin());
  EXPECT_EQ(std::vector<int>(each, each + 4), values);
  EXPECT_EQ(heap.find_array<int>("each").length, 4u);
  EXPECT_EQ(heap.construct<int>("same")(1), nullptr);
  EXPECT_EQ(heap.find_or_construct<int>("same")(1), same);
}

TEST_F(KeptHeapTest, UniqueAndAnonymousObjects) {
  Heap heap = create();
  double* const unique = heap.construct<double>(unique_instance)(1.5);
  EXPECT_EQ(heap.find<double>(unique_instance), unique);
  EXPECT_EQ(heap.construct<double>(unique_instance)(2.5), nullptr);
  double* const one = heap.construct<double>(anonymous_instance)(3.5);
  double* const other = heap.construct<double>(anonymous_instance)(4.5);
  EXPECT_NE(one, other);
  EXPECT_TRUE(heap.destroy_ptr(one));
  EXPECT_TRUE(heap.destroy_ptr(other));
  EXPECT_TRUE(heap.destroy<double>(unique_instance));
  EXPECT_FALSE(heap.destroy<double>(unique_instance));
  double outside = 0;
  EXPECT_FALSE(heap.destroy_ptr(&outside));
}

TEST_F(KeptHeapTest, AnotherTypeIsNotFound) {
  Heap heap = create();
  heap.construct<int>("number")(1);
  EXPECT_THROW((void)heap.find<float>("number"), TypeMismatch);
  EXPECT_THROW((void)heap.find_or_construct<long>("number")(1), TypeMismatch);
  EXPECT_THROW(heap.destroy<char>("number"), TypeMismatch);
}

TEST_F(KeptHeapTest, AConstructorThatThrowsLeavesNothing) {
  Heap heap = create();
  const auto before = heap.statistics().allocated_bytes;
  Counted::throw_at = 3;
  EXPECT_THROW((void)heap.construct<Counted>("counted")[5](), std::runtime_error);
  Counted::throw_at = -1;
  EXPECT_EQ(Counted::alive, 0);
  EXPECT_EQ(heap.find<Counted>("counted"), nullptr);
  EXPECT_EQ(heap.statistics().allocated_bytes, before);
  (void)heap.construct<Counted>("counted")[5](1);
  EXPECT_EQ(Counted::alive, 5);
  EXPECT_TRUE(heap.destroy<Counted>("counted"));
  EXPECT_EQ(Counted::alive, 0);
}

TEST_F(KeptHeapTest, ManyNamesAreFoundAndListed) {
  constexpr int kNames = 20'000;
  {
    Heap heap = create();
    for (int i = 0; i < kNames; ++i) heap.construct<int>("name " + std::to_string(i))(i);
    for (int i = 0; i < kNames; i += 2) heap.destroy<int>("name " + std::to_string(i));
    ASSERT_TRUE(heap.describe(heap.find<int>("name 7"), "the seventh"));
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = open();
  for (int i = 1; i < kNames; i += 2) ASSERT_EQ(*heap.find<int>("name " + std::to_string(i)), i);
  EXPECT_EQ(heap.find<int>("name 8"), nullptr);
  int listed = 0, described = 0;
  heap.for_each_object([&](const ObjectInfo& one) {
    ++listed;
    if (one.description.empty()) return;
    ++described;
    EXPECT_EQ(one.name, "name 7");
    EXPECT_EQ(one.description, "the seventh");
    EXPECT_EQ(one.kind, ObjectKind::kNamed);
    EXPECT_EQ(one.bytes, sizeof(int));
  });
  EXPECT_EQ(listed, kNames / 2);
  EXPECT_EQ(described, 1);
}

TEST_F(KeptHeapTest, ItsMemoryResourceIsAtItsPlaceAgain) {
  using Numbers = std::pmr::vector<int>;
  {
    Heap heap = create();
    auto* const numbers = heap.construct<Numbers>("numbers")(heap.resource());
    numbers->assign(100, 3);
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = open();
  auto* const numbers = heap.find<Numbers>("numbers");
  numbers->resize(10'000, 4);
  EXPECT_EQ(numbers->get_allocator().resource(), heap.resource());
  EXPECT_TRUE(heap.owns(numbers->data()));
  EXPECT_EQ(std::accumulate(numbers->begin(), numbers->end(), 0), 300 + 9'900 * 4);
}

TEST_F(KeptHeapTest, AFullHeapSaysSo) {
  Heap heap = must(Heap::create(folder.uri(), {.memory = 32_MiB, .capacity = 256_MiB}));
  EXPECT_EQ(heap.allocate(300_MiB), nullptr);
  EXPECT_THROW((void)heap.construct<char>("big")[300_MiB](), std::bad_alloc);
  std::vector<void*> all;
  while (void* const memory = heap.allocate(1_MiB)) all.push_back(memory);
  EXPECT_GT(all.size(), 100u);
  for (void* const one : all) heap.deallocate(one);
  EXPECT_TRUE(heap.commit());
}

TEST_F(KeptHeapTest, CapacityCostsNothing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: ThreadSanitizer leaves 8 GiB of addresses for a heap";
#endif
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kQuarter = 2 * 1024_GiB;  // its own memory lies in the middle of the longest gap
#else
  constexpr std::size_t kQuarter = 8 * 1024_GiB;
#endif
  const HeapOptions options{.memory = 32_MiB, .capacity = 4 * kQuarter};
  constexpr std::size_t kFar = 2 * kQuarter - 1024_GiB;
  {
    Heap heap = must(Heap::create(folder.uri(), options));
    EXPECT_EQ(heap.statistics().capacity_bytes, options.capacity);
    EXPECT_EQ(heap.allocate(std::min(options.capacity, 20 * 1024_GiB)), nullptr) << "one object has at most 16 TiB";
    std::byte* ends[2] = {};
    for (std::byte*& one : ends) {
      one = static_cast<std::byte*>(heap.allocate(kFar));
      ASSERT_NE(one, nullptr);
      one[0] = std::byte{1};
      one[kFar - 1] = std::byte{2};
    }
    EXPECT_EQ(heap.allocate(kFar), nullptr);
    auto* const kept = heap.construct<std::byte*>("far")[2](nullptr);
    std::copy(std::begin(ends), std::end(ends), kept);
    ASSERT_TRUE(heap.commit());
    EXPECT_LT(heap.versions().value().back().pages, 100u);
  }
  Heap heap = must(Heap::open(folder.uri(), options));
  const auto far = heap.find_array<std::byte*>("far");
  ASSERT_EQ(far.length, 2u);
  for (std::size_t i = 0; i < far.length; ++i) {
    EXPECT_EQ(far.first[i][0], std::byte{1});
    EXPECT_EQ(far.first[i][kFar - 1], std::byte{2});
  }
  ASSERT_TRUE(heap.commit());
  EXPECT_LT(heap.versions().value().back().pages, 100u);
}

// It made 0.6 GiB of tables once.
TEST_F(KeptHeapTest, FreeingWhatWasNeverTouchedTakesNoMemory) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: ThreadSanitizer leaves 8 GiB of addresses for a heap";
#endif
  Heap heap = must(Heap::create(folder.uri(), {.memory = 32_MiB}));
  const auto resident_pages = [] {
    std::ifstream status("/proc/self/statm");
    std::size_t all = 0, resident = 0;
    status >> all >> resident;
    return resident;
  };
  void* const large = heap.allocate(500_GiB);
  ASSERT_NE(large, nullptr);
  const std::size_t before = resident_pages();
  heap.deallocate(large);
  EXPECT_LT(resident_pages(), before + 100_MiB / 4096);
}

TEST_F(KeptHeapTest, WhatIsFreedLeavesTheFile) {
  Heap heap = create();
  void* const big = heap.allocate(64_MiB);
  std::memset(big, 1, 64_MiB);
  ASSERT_TRUE(heap.commit());
  const auto full = heap.versions().value().back().pages;
  heap.deallocate(big);
  ASSERT_TRUE(heap.commit());
  const auto empty = heap.versions().value().back().pages;
  EXPECT_GE(full - empty, 64_MiB / 4096);
}

TEST_F(KeptHeapTest, ThreadsAllocateAndCommitAtOnce) {
  constexpr int kThreads = 3;
  {
    Heap heap = create();
    std::vector<std::thread> threads;
    std::atomic<bool> stop{false};
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        auto* const mine = heap.construct<Vector<Text>>("thread " + std::to_string(t))(heap.allocator<Text>());
        while (!stop) {
          const auto pause = heap.pause();
          if (mine->size() < 3000) {
            mine->push_back(Text(random() % 500, static_cast<char>('a' + t), heap.allocator<char>()));
          } else {
            mine->erase(mine->begin() + static_cast<long>(mine->size() / 3), mine->end());
          }
        }
      });
    }
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(heap.commit());
    stop = true;
    for (auto& thread : threads) thread.join();
  }
  ASSERT_TRUE(Heap::check(folder.uri())) << Heap::check(folder.uri()).error().message();
  Heap heap = open();
  for (int t = 0; t < kThreads; ++t) {
    const auto* const mine = heap.find<Vector<Text>>("thread " + std::to_string(t));
    if (mine == nullptr) continue;  // the last commit was before it
    for (const Text& one : *mine) {
      ASSERT_EQ(std::count(one.begin(), one.end(), 'a' + t), static_cast<long>(one.size()));
    }
  }
}

TEST_F(KeptHeapTest, NothingIsLeakedByThreadsOfFormerProcesses) {
  std::size_t allocated = 0;
  for (int round = 0; round < 4; ++round) {
    Heap heap = round == 0 ? create() : open();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 2000; ++i) heap.deallocate(heap.allocate(16 + i % 500));
        if (!heap.commit()) ADD_FAILURE();
      });
    }
    for (auto& thread : threads) thread.join();
    if (round == 0) allocated = heap.statistics().allocated_bytes;
    EXPECT_LE(heap.statistics().allocated_bytes, allocated + 4096);
  }
}

}  // namespace
}  // namespace farheap::testing
