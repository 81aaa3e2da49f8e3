// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "spy_space.hpp"

namespace farheap::heap {
namespace {

[[nodiscard]] bool is_aligned(const void* at, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(at) % alignment == 0;
}

struct Object {
  unsigned char* at;
  std::size_t bytes;
  unsigned char pattern;

  void fill() const { std::memset(at, pattern, bytes); }
  [[nodiscard]] bool intact(std::size_t count) const {
    const std::size_t looked_at = std::min(count, bytes);
    return looked_at == 0 || (*at == pattern && std::memcmp(at, at + 1, looked_at - 1) == 0);
  }
};

class HeapTest : public testing::Test {
 protected:
  SpySpace space_;
  Heap heap_{space_};
};

TEST_F(HeapTest, EverySizeIsUsableAlignedAndWastesLittle) {
  ASSERT_TRUE(heap_.usable());
  for (std::size_t bytes = 0; bytes < 40'000; bytes += bytes < 2000 ? 1 : 97) {
    void* object = heap_.allocate(bytes);
    ASSERT_NE(object, nullptr);
    ASSERT_TRUE(is_aligned(object, bytes >= 16 ? 16 : 8)) << bytes;
    std::size_t usable = heap_.usable_size(object);
    ASSERT_GE(usable, bytes);
    if (bytes > 48) {
      ASSERT_LE((usable - bytes) * 4, usable) << bytes;
    }
    ASSERT_TRUE(heap_.owns(object));
    std::memset(object, 0xff, usable);
    heap_.free(object);
  }
}

TEST_F(HeapTest, EveryAlignment) {
  for (std::size_t alignment = 1; alignment <= 4 * base::kMiB; alignment *= 2) {
    for (std::size_t bytes : {0ul, 1ul, 8ul, 24ul, 100ul, 1000ul, 4096ul, 5000ul, 33'000ul, 100'000ul}) {
      void* object = heap_.allocate_aligned(bytes, alignment);
      ASSERT_NE(object, nullptr) << bytes << " " << alignment;
      ASSERT_TRUE(is_aligned(object, alignment)) << bytes << " " << alignment;
      ASSERT_GE(heap_.usable_size(object), bytes);
      std::memset(object, 0xee, bytes);
      heap_.free(object);
    }
  }
}

TEST_F(HeapTest, ImpossibleSizesGetNothing) {
  EXPECT_EQ(heap_.allocate(std::size_t{1} << 50), nullptr);
  EXPECT_EQ(heap_.allocate(~std::size_t{0}), nullptr);
  EXPECT_EQ(heap_.allocate_zeroed(~std::size_t{0} - 100), nullptr);
  EXPECT_EQ(heap_.allocate_aligned(~std::size_t{0} - 100, 4096), nullptr);
  EXPECT_EQ(heap_.allocate_aligned(8, std::size_t{1} << 60), nullptr);
  void* object = heap_.allocate(100'000);
  EXPECT_EQ(heap_.reallocate(object, ~std::size_t{0} - 5000), nullptr);
  EXPECT_EQ(heap_.usable_size(object), 102'400u) << "unchanged";
}

TEST_F(HeapTest, ZeroedIsZeroAlsoWhereOthersWrote) {
  for (std::size_t bytes : {8ul, 100ul, 4000ul, 30'000ul, 50'000ul, 1'000'000ul, 5'000'000ul}) {
    for (int round = 0; round < 20; ++round) {
      auto* object = static_cast<unsigned char*>(heap_.allocate_zeroed(bytes));
      ASSERT_TRUE(std::all_of(object, object + bytes, [](unsigned char value) { return value == 0; })) << bytes;
      std::memset(object, 0xab, bytes);
      heap_.free(object);
    }
  }
}

TEST_F(HeapTest, ReallocateKeepsTheContents) {
  std::mt19937 random(7);
  for (int chain = 0; chain < 60; ++chain) {
    Object object{nullptr, 0, static_cast<unsigned char>(chain + 1)};
    for (int step = 0; step < 30; ++step) {
      std::size_t bytes = std::size_t{1} << (random() % 19);
      bytes += random() % bytes;
      auto* moved = static_cast<unsigned char*>(heap_.reallocate(object.at, bytes));
      ASSERT_NE(moved, nullptr);
      std::size_t kept = std::min(object.bytes, bytes);
      object = {moved, bytes, object.pattern};
      ASSERT_TRUE(object.intact(kept)) << kept;
      ASSERT_GE(heap_.usable_size(moved), bytes);
      object.fill();
    }
    heap_.free(object.at);
  }
}

TEST_F(HeapTest, ReallocateStaysWhereItCan) {
  void* small = heap_.allocate(1000);
  EXPECT_EQ(heap_.reallocate(small, 1024), small);
  EXPECT_EQ(heap_.reallocate(small, 600), small);
  void* large = heap_.allocate(4 * base::kMiB);
  EXPECT_EQ(heap_.reallocate(large, 8 * base::kMiB), large) << "nothing lies behind it";
  EXPECT_EQ(space_.extended, 4 * base::kMiB);
  EXPECT_EQ(heap_.reallocate(large, base::kMiB * 5), large);
  EXPECT_EQ(heap_.usable_size(large), 8 * base::kMiB) << "small steps down stay as they are";
  std::size_t before = space_.given_back;
  EXPECT_EQ(heap_.reallocate(large, base::kMiB), large);
  EXPECT_EQ(heap_.usable_size(large), base::kMiB);
  EXPECT_EQ(space_.given_back - before, 7 * base::kMiB);
}

// Growing by small steps must not copy the whole each time.
TEST_F(HeapTest, GrowingInSmallStepsMovesSeldom) {
  void* object = heap_.allocate(40'000);
  void* blocker = nullptr;
  int moves = 0;
  for (std::size_t bytes = 40'000; bytes < 4'000'000; bytes += 4096) {
    void* grown = heap_.reallocate(object, bytes);
    moves += grown != object;
    if (grown != object) blocker = heap_.allocate(33'000);  // takes the place behind it
    object = grown;
  }
  EXPECT_LT(moves, 60);
  EXPECT_NE(object, nullptr);
  heap_.free(blocker);
}

class HeapRandom : public HeapTest, public testing::WithParamInterface<unsigned> {};

// Every object has a pattern; none may be changed by another, and no two may overlap.
TEST_P(HeapRandom, ObjectsNeverOverlap) {
  std::mt19937 random(GetParam());
  std::vector<Object> objects;
  std::map<unsigned char*, std::size_t> places;
  for (int step = 0; step < 60'000; ++step) {
    if (objects.size() > 3000 || (!objects.empty() && random() % 5 < 2)) {
      std::swap(objects[random() % objects.size()], objects.back());
      Object object = objects.back();
      objects.pop_back();
      ASSERT_TRUE(object.intact(object.bytes));
      places.erase(object.at);
      if (random() % 2 == 0) {
        heap_.free(object.at);
      } else {
        heap_.free_sized(object.at, object.bytes);
      }
      continue;
    }
    std::size_t bytes = 1 + random() % (std::size_t{8} << (random() % 14));
    std::size_t alignment = random() % 8 == 0 ? std::size_t{1} << (random() % 14) : 1;
    Object object{static_cast<unsigned char*>(heap_.allocate_aligned(bytes, alignment)), bytes,
                  static_cast<unsigned char>(random())};
    ASSERT_NE(object.at, nullptr);
    ASSERT_TRUE(is_aligned(object.at, alignment));
    auto next = places.lower_bound(object.at);
    ASSERT_TRUE(next == places.end() || object.at + heap_.usable_size(object.at) <= next->first);
    ASSERT_TRUE(next == places.begin() || std::prev(next)->first + std::prev(next)->second <= object.at);
    places[object.at] = heap_.usable_size(object.at);
    object.fill();
    objects.push_back(object);
  }
  for (const Object& object : objects) ASSERT_TRUE(object.intact(object.bytes));
}
INSTANTIATE_TEST_SUITE_P(Seeds, HeapRandom, testing::Values(1u, 2u, 3u));

TEST(Heap, SmallSpaceIsUsedUpAndThenSaysSo) {
  SpySpace space(8 * base::kMiB);
  Heap heap(space);
  std::vector<void*> objects;
  while (void* object = heap.allocate(1024)) objects.push_back(object);
  EXPECT_GE(objects.size() * 1024, 7 * base::kMiB);
  for (void* object : objects) heap.free(object);
  heap.flush_thread_cache();
  EXPECT_NE(heap.allocate(5 * base::kMiB), nullptr) << "what small objects used is there for large ones";
}

TEST(Heap, WithoutAddressesItSaysNo) {
  segment::PlainSpace space(std::size_t{1} << 60);
  Heap heap(space);
  EXPECT_FALSE(heap.usable());
  EXPECT_EQ(heap.allocate(8), nullptr);
  EXPECT_EQ(heap.allocate_zeroed(100'000), nullptr);
  EXPECT_EQ(heap.allocate_aligned(8, 4096), nullptr);
}

// More heaps than there are bindings for thread caches, and heaps that come and go.
TEST(Heap, ManyHeapsInOneProcess) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<SpySpace>> spaces;
    std::vector<std::unique_ptr<Heap>> heaps;
    for (int i = 0; i < 7; ++i) {
      spaces.push_back(std::make_unique<SpySpace>(64 * base::kMiB));
      heaps.push_back(std::make_unique<Heap>(*spaces.back()));
    }
    std::vector<std::vector<void*>> objects(heaps.size());
    for (int i = 0; i < 2000; ++i) {
      for (std::size_t which = 0; which < heaps.size(); ++which) {
        void* object = heaps[which]->allocate(static_cast<std::size_t>(i));
        ASSERT_TRUE(heaps[which]->owns(object));
        objects[which].push_back(object);
      }
    }
    for (std::size_t which = 0; which < heaps.size(); ++which) {
      for (void* object : objects[which]) heaps[which]->free(object);
      EXPECT_EQ(heaps[which]->statistics().live_bytes, 0u);
    }
  }
}

}  // namespace
}  // namespace farheap::heap
