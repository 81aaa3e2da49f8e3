// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions beside a common heap: whose an object is, that chunks are never shared, what happens to free slots.
#include "heap/heap_regions.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "spy_space.hpp"

namespace farheap::heap {
namespace {

using base::kMiB;

struct World {
  explicit World(unsigned count, std::size_t capacity = 4 * base::kGiB) : space(capacity), common(space) {
    auto made = HeapRegions::make(space, common, count);
    EXPECT_TRUE(made) << made.error().message();
    regions = std::move(*made);
  }
  void* allocate(unsigned region, std::size_t bytes) { return regions->heap_for(region, bytes).allocate(bytes); }
  void free(void* object) {
    regions->heap_of(object).free(object);
    regions->look_at_spare();
  }
  // 32 MiB of objects of 256 bytes, of which every `gone`th is free again; those that stay.
  std::vector<void*> allocate_and_free(unsigned region, std::size_t gone) {
    std::vector<void*> all, staying;
    for (std::size_t i = 0; i < 32 * kMiB / 256; ++i) all.push_back(allocate(region, 256));
    for (std::size_t i = 0; i < all.size(); ++i) i % gone == 0 ? free(all[i]) : staying.push_back(all[i]);
    regions->heap_for(region, 256).flush_thread_cache();
    return staying;
  }
  void free_all(const std::vector<void*>& objects) {
    for (void* const object : objects) free(object);
  }
  [[nodiscard]] std::size_t chunk_of(const void* object) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(object) - space.base()) / kChunkBytes;
  }
  // As often as it takes to be looked at.
  void have_spare_looked_at() const {
    for (unsigned i = 0; i < HeapRegions::kLookEvery; ++i) regions->look_at_spare();
  }

  SpySpace space;
  Heap common;
  std::unique_ptr<HeapRegions> regions;
};

TEST(HeapRegions, ShareNoChunk) {
  World world(3);
  std::map<std::size_t, unsigned> region_of_chunk;
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const unsigned region = random() % 4;
    void* const object = world.allocate(region, 1 + random() % 300);
    ASSERT_NE(object, nullptr);
    const auto [at, is_new] = region_of_chunk.try_emplace(world.chunk_of(object), region);
    ASSERT_EQ(at->second, region) << (is_new ? "new" : "old");
  }
  std::set<unsigned> seen;
  for (const auto& [chunk, region] : region_of_chunk) seen.insert(region);
  EXPECT_EQ(seen.size(), 4u);
}

TEST(HeapRegions, KnowTheirChunks) {
  World world(2);
  EXPECT_EQ(world.regions->bytes_of(1), 0u);
  std::map<std::size_t, unsigned> region_of_chunk;
  std::vector<void*> objects;
  for (int i = 0; i < 120'000; ++i) {
    const unsigned region = static_cast<unsigned>(i / 1'000) % 3;
    objects.push_back(world.allocate(region, 200));
    region_of_chunk[world.chunk_of(objects.back())] = region;
    ASSERT_EQ(world.regions->region_of(objects.back()), region);
  }
  for (const unsigned region : {1u, 2u}) {
    std::size_t chunks = 0;
    world.regions->for_each_run(region, [&](const std::byte* at, std::size_t bytes) {
      for (std::size_t done = 0; done < bytes; done += kChunkBytes, ++chunks) {
        EXPECT_EQ(region_of_chunk.at(world.chunk_of(at + done)), region);
      }
    });
    EXPECT_GT(chunks, 1u);
    EXPECT_EQ(chunks, static_cast<std::size_t>(
                          std::ranges::count(region_of_chunk, region, [](const auto& one) { return one.second; })));
    EXPECT_EQ(world.regions->bytes_of(region), chunks * kChunkBytes);
  }
}

TEST(HeapRegions, LargeObjectsAreTheCommonHeaps) {
  World world(1);
  void* const large = world.allocate(1, kLargestSmall + 1);
  EXPECT_EQ(&world.regions->heap_of(large), &world.common);
  void* const small = world.allocate(1, kLargestSmall);
  EXPECT_NE(&world.regions->heap_of(small), &world.common);
  world.free(large);
  world.free(small);
}

TEST(HeapRegions, AnObjectStaysInItsRegionAsLongAsItIsSmall) {
  World world(2);
  auto* object = static_cast<unsigned char*>(world.allocate(2, 10));
  Heap& region = world.regions->heap_of(object);
  ASSERT_NE(&region, &world.common);
  std::memset(object, 0x5a, 10);
  for (const std::size_t bytes : {100u, 3'000u, 32'768u}) {
    object = static_cast<unsigned char*>(world.regions->reallocate(object, bytes));
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(&world.regions->heap_of(object), &region) << bytes;
  }
  object = static_cast<unsigned char*>(world.regions->reallocate(object, 100'000));
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(&world.regions->heap_of(object), &world.common);
  object = static_cast<unsigned char*>(world.regions->reallocate(object, 10));
  EXPECT_EQ(&world.regions->heap_of(object), &world.common) << "it came from there";
  for (int i = 0; i < 10; ++i) EXPECT_EQ(object[i], 0x5a);
  EXPECT_EQ(region.statistics().live_bytes, 0u) << "it was left behind";
  world.free(object);
}

TEST(HeapRegions, AChunkThatIsGivenBackBelongsToWhoGetsItNext) {
  World world(1);
  std::vector<void*> objects;
  for (std::size_t i = 0; i < 16 * kMiB / 1024; ++i) objects.push_back(world.allocate(1, 1024));
  for (void* const object : objects) world.free(object);
  world.regions->heap_for(1, 1).flush_thread_cache();
  world.regions->purge();
  for (std::size_t i = 0; i < objects.size(); ++i) {
    void* const object = world.allocate(HeapRegions::kCommon, 1024);
    ASSERT_EQ(&world.regions->heap_of(object), &world.common);
    world.free(object);
  }
}

// Half of a region is freed and not allocated anew.
TEST(HeapRegions, WhatARegionDoesNotUseOthersFill) {
  World world(2);
  const std::vector<void*> staying = world.allocate_and_free(1, 2);
  world.have_spare_looked_at();
  const HeapRegions::Use before = world.regions->use();
  EXPECT_GE(before.spare_bytes, 15 * kMiB);
  EXPECT_NE(&world.regions->heap_for(HeapRegions::kCommon, 256), &world.common);
  EXPECT_NE(&world.regions->heap_for(2, 256), &world.regions->heap_for(HeapRegions::kCommon, 256))
      << "regions keep apart";
  EXPECT_EQ(&world.regions->heap_for(HeapRegions::kCommon, 512), &world.common) << "of another class";
  const std::size_t held = world.space.held();
  std::vector<void*> others;
  for (std::size_t i = 0; i < 6 * kMiB / 256; ++i) others.push_back(world.allocate(HeapRegions::kCommon, 256));
  EXPECT_EQ(world.space.held(), held) << "there was room";
  EXPECT_LE(world.regions->use().spare_bytes, before.spare_bytes - 5 * kMiB);
  world.free_all(others);
  world.free_all(staying);
  world.regions->heap_for(1, 1).flush_thread_cache();
  world.regions->purge();
  EXPECT_GE(world.regions->most_use().spare_bytes, 15 * kMiB);
}

// The holes of what was freed would stay, and memory grow beyond what it is without regions.
TEST(HeapRegions, WhatTheCommonHeapHasLeftFreeRegionsFill) {
  World world(2);
  void* const large = world.allocate(HeapRegions::kCommon, 64 * kMiB);
  const std::vector<void*> staying = world.allocate_and_free(HeapRegions::kCommon, 2);
  world.have_spare_looked_at();
  EXPECT_EQ(&world.regions->heap_for(1, 256), &world.common);
  const std::size_t held = world.space.held();
  std::vector<void*> others;
  for (std::size_t i = 0; i < 12 * kMiB / 256; ++i) others.push_back(world.allocate(1 + i % 2, 256));
  EXPECT_EQ(world.space.held(), held) << "there was room";
  world.have_spare_looked_at();
  EXPECT_NE(&world.regions->heap_for(1, 256), &world.common) << "few are left free";
  world.free_all(others);
  world.free_all(staying);
  world.free(large);
}

TEST(HeapRegions, LittleThatIsFreeStaysTheRegions) {
  World world(1);
  (void)world.allocate_and_free(1, 8);
  world.have_spare_looked_at();
  EXPECT_EQ(&world.regions->heap_for(HeapRegions::kCommon, 256), &world.common);
}

TEST(HeapRegions, AFullSpaceIsToldByAllOfThem) {
  World world(1, 16 * kMiB);
  for (const unsigned region : {1u, HeapRegions::kCommon}) {
    void* object = nullptr;
    for (int i = 0; i < 1'000'000; ++i) {
      object = world.allocate(region, 1024);
      if (object == nullptr) break;
    }
    EXPECT_EQ(object, nullptr) << region;
  }
  void* const mine = world.regions->heap_for(1, 64).allocate(64);
  if (mine != nullptr) {
    EXPECT_EQ(world.regions->reallocate(mine, 64 * kMiB), nullptr);
  }
}

// Threads allocate in all regions, pass objects to each other, and free what others allocated; each object holds what
// was written to it.
TEST(HeapRegions, ThreadsPassObjectsOfAllRegions) {
  constexpr unsigned kThreads = 4, kRegions = 3;
  constexpr int kSteps = 60'000;
  World world(kRegions);
  struct Parcel {
    unsigned char* object = nullptr;
    std::size_t bytes = 0;
    unsigned char value = 0;
  };
  std::vector<std::atomic<Parcel*>> places(512);
  std::atomic<int> wrong{0};
  const auto look_and_free = [&](Parcel* parcel) {
    if (parcel == nullptr) return;
    for (std::size_t i = 0; i < parcel->bytes; ++i) wrong += parcel->object[i] != parcel->value;
    world.free(parcel->object);
    delete parcel;
  };
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int step = 0; step < kSteps; ++step) {
      auto* const parcel = new Parcel{nullptr, 1 + random() % 200, static_cast<unsigned char>(random())};
      parcel->object = static_cast<unsigned char*>(world.allocate(random() % (kRegions + 1), parcel->bytes));
      if (random() % 8 == 0) {
        parcel->bytes = 1 + random() % (random() % 50 == 0 ? 60'000 : 500);
        parcel->object = static_cast<unsigned char*>(world.regions->reallocate(parcel->object, parcel->bytes));
      }
      std::memset(parcel->object, parcel->value, parcel->bytes);
      look_and_free(places[random() % places.size()].exchange(parcel));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(work, i + 1);
  for (std::thread& thread : threads) thread.join();
  for (auto& place : places) look_and_free(place.load());
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(world.common.statistics().live_bytes, 0u);
  const auto use = world.regions->use();
  EXPECT_GE(use.bytes, use.spare_bytes);
  std::size_t left = 0;
  for (unsigned region = 1; region <= kRegions; ++region) {
    left += world.regions->heap_for(region, 64).statistics().live_bytes;
  }
  EXPECT_EQ(left, 0u);
}

TEST(HeapRegions, AForkedChildHasItsOwn) {
  World world(2);
  std::atomic<bool> stop{false};
  std::thread beside([&] {
    for (std::size_t i = 0; !stop; ++i) world.free(world.allocate(i % 3, 1 + i % 500));
  });
  for (int i = 0; i < 20; ++i) {
    auto* const mine = static_cast<char*>(world.allocate(1, 100));
    std::strcpy(mine, "of the parent");
    world.common.lock_for_fork();
    world.regions->lock_for_fork();
    world.space.lock_for_fork();
    const pid_t child = fork();
    if (child == 0) {
      world.space.unlock_after_fork();
      world.regions->unlock_after_fork_child();
      world.common.unlock_after_fork_child();
      bool is_right = std::strcmp(mine, "of the parent") == 0;
      for (unsigned k = 0; k < 3'000; ++k) {
        void* const object = world.allocate(k % 3, 1 + k % 900);
        is_right &= object != nullptr;
        if (k % 2 == 0) world.free(object);
      }
      world.free(mine);
      _exit(is_right ? 0 : 1);
    }
    world.space.unlock_after_fork();
    world.regions->unlock_after_fork_parent();
    world.common.unlock_after_fork_parent();
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    world.free(mine);
  }
  stop = true;
  beside.join();
}

}  // namespace
}  // namespace farheap::heap
