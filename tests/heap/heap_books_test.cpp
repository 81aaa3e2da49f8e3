// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the heap's books say, what they are kept apart from, and what is given back.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "heap/heap.hpp"
#include "spy_space.hpp"

namespace farheap::heap {
namespace {

class HeapBooks : public testing::Test {
 protected:
  SpySpace space_;
  Heap heap_{space_};
};

// Objects may be far away: with every page of the heap forbidden, allocating and freeing go on as before.
TEST_F(HeapBooks, AllocatingAndFreeingNeverTouchObjects) {
  std::vector<void*> objects;
  std::mt19937 random(4);
  auto allocate_some = [&] {
    for (int i = 0; i < 20'000; ++i) {
      std::size_t bytes = 1 + random() % (std::size_t{8} << (random() % 13));
      objects.push_back(random() % 4 == 0 ? heap_.allocate_aligned(bytes, 256) : heap_.allocate(bytes));
    }
  };
  allocate_some();
  std::size_t used = base::round_up(space_.held() * 2, kChunkBytes);
  ASSERT_EQ(mprotect(space_.base(), used, PROT_NONE), 0);
  std::shuffle(objects.begin(), objects.end(), random);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 15'000; ++i) {
      heap_.free(objects.back());
      objects.pop_back();
    }
    allocate_some();
    std::shuffle(objects.begin(), objects.end(), random);
  }
  for (void*& object : objects) object = heap_.reallocate(object, heap_.usable_size(object) * 3 / 4);
  EXPECT_GT(heap_.statistics().live_bytes, 0u);
  for (void* object : objects) heap_.free(object);
  heap_.flush_thread_cache();
  EXPECT_EQ(heap_.statistics().live_bytes, 0u);
  ASSERT_EQ(mprotect(space_.base(), used, PROT_READ | PROT_WRITE), 0);
}

TEST_F(HeapBooks, EmptySlabsAndChunksAreGivenBack) {
  std::vector<void*> objects;
  for (int i = 0; i < 200'000; ++i) objects.push_back(heap_.allocate(256));
  EXPECT_GE(space_.held(), 200'000u * 256);
  std::shuffle(objects.begin(), objects.end(), std::mt19937{1});
  for (void* object : objects) heap_.free(object);
  // The slots in the thread cache hold their slabs: without them there is one slab, and a few empty chunks.
  heap_.flush_thread_cache();
  EXPECT_LE(space_.held(), (1 + ChunkPool::kKeptEmpty) * kChunkBytes);
  heap_.purge();
  EXPECT_LE(space_.held(), kChunkBytes);
}

// Every slab that emptied left its bin, and the next refill opened one: objects that came and went in order took the
// chunk pool's lock as often as a bin's.
TEST_F(HeapBooks, ASlabThatEmptiesStaysWhereItIsAllThereIsToAllocateFrom) {
  constexpr std::size_t kBytes = 4096;
  const unsigned size_class = class_of(kBytes);
  const unsigned slots = kSizeClasses[size_class].slots;
  const auto slabs = [&] { return heap_.statistics().classes[size_class].slabs; };
  heap_.free(heap_.allocate(kBytes));
  heap_.thread_exit();  // from now on every slot comes from its bin and goes there
  const auto fill = [&] {
    std::vector<void*> slab;
    for (unsigned i = 0; i < slots; ++i) slab.push_back(heap_.allocate(kBytes));
    return slab;
  };
  std::vector<void*> first = fill(), second = fill();
  EXPECT_EQ(slabs(), 2u);
  for (void* object : first) heap_.free(object);
  EXPECT_EQ(slabs(), 2u) << "the one that is left is full";
  EXPECT_EQ(heap_.statistics().waiting_bytes, 0u);
  std::vector<void*> third = fill();
  EXPECT_EQ(third, first);
  for (void* object : second) heap_.free(object);
  for (void* object : third) heap_.free(object);
  EXPECT_EQ(slabs(), 1u);
}

TEST_F(HeapBooks, PagesOfEmptySlabsAreDroppedInChunksThatLive) {
  std::vector<std::vector<void*>> slabs;
  for (int i = 0; i < 100'000; ++i) {
    if (i % 64 == 0) slabs.emplace_back();
    slabs.back().push_back(heap_.allocate(1024));
  }
  for (std::size_t i = 0; i < slabs.size(); ++i) {
    if (i % 8 == 0) continue;
    for (void* object : slabs[i]) heap_.free(object);
  }
  heap_.flush_thread_cache();
  std::size_t freed = slabs.size() * 7 / 8 * 64 * 1024;
  EXPECT_GE(space_.discarded + space_.given_back, freed * 8 / 10);
}

TEST_F(HeapBooks, ABigObjectIsGivenBackAtOnceAndAModerateOneWaits) {
  heap_.free(heap_.allocate(10 * base::kMiB));
  EXPECT_EQ(space_.held(), 0u);
  void* moderate = heap_.allocate(100'000);
  heap_.free(moderate);
  EXPECT_GT(space_.held(), 0u);
  EXPECT_EQ(heap_.allocate(90'000), moderate) << "used again";
  heap_.free(moderate);
  heap_.purge();
  EXPECT_EQ(space_.held(), 0u);
}

TEST_F(HeapBooks, WhatWaitsIsBounded) {
  std::vector<void*> objects;
  for (int i = 0; i < 1000; ++i) objects.push_back(heap_.allocate(500'000));
  for (void* object : objects) heap_.free(object);
  EXPECT_LE(space_.held(), 8 * base::kMiB);
  EXPECT_EQ(heap_.statistics().waiting_bytes, space_.held());
}

// The runtime's own heap kept a buffer of each size that a store had ever used, 8 MiB in every process of a family.
TEST_F(HeapBooks, WhatWaitsIsBoundedByWhatItsMakerSays) {
  Heap sparing(space_, 256 * base::kKiB);
  for (int i = 0; i < 100; ++i) {
    void* kept = sparing.allocate(100'000);
    sparing.free(sparing.allocate(100'000 + i * base::kPageBytes * 4));
    sparing.free(kept);
    EXPECT_LE(sparing.statistics().waiting_bytes, 256 * base::kKiB);
  }
  void* moderate = sparing.allocate(100'000);
  sparing.free(moderate);
  EXPECT_EQ(sparing.allocate(90'000), moderate) << "used again";
  sparing.free(moderate);
  sparing.purge();
  EXPECT_EQ(space_.held(), 0u);
}

TEST_F(HeapBooks, StatisticsAddUp) {
  std::map<unsigned, std::size_t> per_class;
  std::vector<void*> objects;
  std::size_t expected = 0;
  std::mt19937 random(9);
  for (int i = 0; i < 10'000; ++i) {
    void* object = heap_.allocate(1 + random() % 50'000);
    std::size_t usable = heap_.usable_size(object);
    expected += usable;
    if (usable <= kLargestSmall) ++per_class[class_of(usable)];
    objects.push_back(object);
  }
  Statistics sum = heap_.statistics();
  EXPECT_EQ(sum.live_bytes, expected);
  for (unsigned i = 1; i < kClassCount; ++i) EXPECT_EQ(sum.classes[i].live, per_class[i]) << i;
  EXPECT_EQ(sum.thread_caches, 1u);
  EXPECT_GE(sum.slab_bytes + sum.large_bytes, expected);
  for (void* object : objects) heap_.free(object);
  EXPECT_EQ(heap_.statistics().live_bytes, 0u);
}

TEST_F(HeapBooks, TheWalkFindsEveryObjectOnce) {
  std::map<void*, std::size_t> objects;
  std::mt19937 random(10);
  std::vector<void*> to_free;
  for (int i = 0; i < 20'000; ++i) {
    void* object = heap_.allocate(1 + random() % (i % 50 == 0 ? 200'000 : 3000));
    if (random() % 2 == 0) {
      to_free.push_back(object);
    } else {
      objects[object] = heap_.usable_size(object);
    }
  }
  for (void* object : to_free) heap_.free(object);
  heap_.flush_thread_cache();
  std::map<void*, std::size_t> found;
  heap_.for_each_object(
      [](void* context, void* object, std::size_t bytes) {
        auto* seen = static_cast<std::map<void*, std::size_t>*>(context);
        EXPECT_TRUE(seen->emplace(object, bytes).second);
      },
      &found);
  EXPECT_EQ(found, objects);
}

TEST_F(HeapBooks, IdleClassesLeaveTheThreadCache) {
  std::vector<void*> objects;
  for (int i = 0; i < 5000; ++i) objects.push_back(heap_.allocate(1000));
  for (void* object : objects) heap_.free(object);
  std::size_t filled = heap_.statistics().classes[class_of(1000)].cached;
  ASSERT_GT(filled, 20u);
  for (int round = 0; round < 4000; ++round) {  // another class is busy
    std::vector<void*> others;
    for (int i = 0; i < 300; ++i) others.push_back(heap_.allocate(64));
    for (void* object : others) heap_.free(object);
  }
  EXPECT_LE(heap_.statistics().classes[class_of(1000)].cached, filled / 4);
}

}  // namespace
}  // namespace farheap::heap
