// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "heap/heap.hpp"
#include "spy_space.hpp"

namespace farheap::heap {
namespace {

// An object that says at both ends what it is: whoever gets it checks it.
class Sealed {
 public:
  static void* make(Heap& heap, std::size_t bytes, std::uint32_t seal) {
    bytes = std::max<std::size_t>(bytes, 16);
    void* object = heap.allocate(bytes);
    std::uint32_t head[3] = {seal, static_cast<std::uint32_t>(bytes), ~seal};
    std::memcpy(object, head, sizeof head);
    std::memcpy(static_cast<char*>(object) + bytes - 4, &seal, 4);
    return object;
  }
  static void check_and_free(Heap& heap, void* object) {
    std::uint32_t head[3];
    std::memcpy(head, object, sizeof head);
    ASSERT_EQ(head[2], ~head[0]);
    std::uint32_t tail = 0;
    std::memcpy(&tail, static_cast<char*>(object) + head[1] - 4, 4);
    ASSERT_EQ(tail, head[0]);
    std::uint32_t none[3] = {};
    std::memcpy(object, none, sizeof none);
    heap.free(object);
  }
};

class Exchange {  // objects cross from thread to thread here
 public:
  void put(std::vector<void*>& objects) {
    std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), objects.begin(), objects.end());
    objects.clear();
  }
  std::vector<void*> take(std::size_t most) {
    std::lock_guard lock(mutex_);
    std::size_t count = std::min(most, waiting_.size());
    std::vector<void*> taken(waiting_.end() - static_cast<long>(count), waiting_.end());
    waiting_.resize(waiting_.size() - count);
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<void*> waiting_;
};

class HeapThreads : public ::testing::Test {
 protected:
  SpySpace space_;
  Heap heap_{space_};
};

TEST_F(HeapThreads, ObjectsAllocatedHereAreFreedThere) {
  Exchange exchange;
  auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<void*> mine;
    for (int round = 0; round < 150; ++round) {
      for (int i = 0; i < 100; ++i) {
        std::size_t bytes = 1 + random() % (random() % 50 == 0 ? 100'000 : 2000);
        mine.push_back(Sealed::make(heap_, bytes, random()));
      }
      exchange.put(mine);
      for (void* object : exchange.take(95)) Sealed::check_and_free(heap_, object);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 6; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(heap_.statistics().live_bytes, 0u);
  for (void* object : exchange.take(1'000'000)) Sealed::check_and_free(heap_, object);
  EXPECT_EQ(heap_.statistics().live_bytes, 0u);
  heap_.flush_thread_cache();
  heap_.purge();
  std::size_t kept_slabs = 0;
  for (const ClassStatistics& of_class : heap_.statistics().classes) kept_slabs += of_class.slabs;
  EXPECT_LE(heap_.statistics().slab_bytes, 600 * kGranuleBytes) << kept_slabs;
}

// What is allocated, kept beside the heap: no address is handed out twice, and none is lost.
class Reference {
 public:
  void add(void* object, unsigned size_class) {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(live_.emplace(object, size_class).second) << object << " was handed out twice";
  }
  void remove(void* object) {
    std::lock_guard lock(mutex_);
    EXPECT_EQ(live_.erase(object), 1u) << object;
  }
  [[nodiscard]] const std::map<void*, unsigned>& live() const { return live_; }

 private:
  std::mutex mutex_;
  std::map<void*, unsigned> live_;
};

// Every thread frees what all of the others have allocated, so that a cache that is full has slots of many owners.
TEST_F(HeapThreads, FreesOfManyOwnersAgreeWithAReference) {
  Exchange exchange;
  Reference reference;
  auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    const std::size_t sizes[] = {8, 100, 1000, 4096, 20'000};
    for (int round = 0; round < 60; ++round) {
      std::vector<void*> mine;
      for (int i = 0; i < 150; ++i) {
        const std::size_t bytes = sizes[random() % std::size(sizes)];
        void* object = heap_.allocate(bytes);
        reference.add(object, class_of(bytes));
        mine.push_back(object);
      }
      std::shuffle(mine.begin(), mine.end(), random);
      exchange.put(mine);
      // More of others than of its own, by and by: what waits in the exchange swings.
      for (void* object : exchange.take(random() % 300)) {
        reference.remove(object);
        heap_.free(object);
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 5; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();

  std::array<std::size_t, kClassCount> expected{};
  for (const auto& [object, size_class] : reference.live()) ++expected[size_class];
  Statistics found = heap_.statistics();
  EXPECT_EQ(found.thread_caches, 0u);
  EXPECT_EQ(found.cached_bytes, 0u);
  for (unsigned i = 1; i < kClassCount; ++i) EXPECT_EQ(found.classes[i].live, expected[i]) << "class " << i;
  std::vector<void*> walked;
  heap_.for_each_object(
      [](void* context, void* object, std::size_t) { static_cast<std::vector<void*>*>(context)->push_back(object); },
      &walked);
  std::vector<void*> live;
  for (const auto& entry : reference.live()) live.push_back(entry.first);
  std::sort(walked.begin(), walked.end());
  std::sort(live.begin(), live.end(), std::less<>());
  EXPECT_EQ(walked, live);
  std::string why;
  EXPECT_TRUE(heap_.check(why)) << why;
  for (void* object : live) heap_.free(object);
  EXPECT_EQ(heap_.statistics().live_bytes, 0u);
}

TEST_F(HeapThreads, AThreadThatEndsGivesBackWhatOthersAllocated) {
  std::vector<void*> objects;
  for (int i = 0; i < 100; ++i) objects.push_back(heap_.allocate(1000));
  heap_.flush_thread_cache();
  std::thread([&] {
    for (void* object : objects) heap_.free(object);
    EXPECT_GT(heap_.statistics().cached_bytes, 0u);
  }).join();
  EXPECT_EQ(heap_.statistics().live_bytes, 0u);
  EXPECT_EQ(heap_.statistics().cached_bytes, 0u);
}

// What couples of threads pass to each other swings by 8 MiB a couple. No more than 8 MiB waited with its memory,
// however many threads there were, so the rest was dropped and made anew each time.
TEST_F(HeapThreads, WhatManyThreadsPassToEachOtherKeepsItsMemory) {
  constexpr int kCouples = 4;
  constexpr int kObjects = 2000;  // 8 MiB a couple
  std::size_t dropped_at_last = 0;
  std::vector<std::thread> threads;
  std::vector<std::vector<void*>> on_the_way(kCouples);
  std::barrier tide(2 * kCouples);
  std::atomic<std::size_t> dropped_before{0};
  for (int thread = 0; thread < 2 * kCouples; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<void*>& objects = on_the_way[thread / 2];
      heap_.free(heap_.allocate(16));  // all of them have caches
      for (int round = 0; round < 8; ++round) {
        tide.arrive_and_wait();
        if (round == 4 && thread == 0) dropped_before = space_.discarded + space_.given_back;
        if (thread % 2 == 0) {
          for (int i = 0; i < kObjects; ++i) objects.push_back(heap_.allocate(4096));
        }
        tide.arrive_and_wait();
        if (thread % 2 == 1) {
          for (void* object : objects) heap_.free(object);
          objects.clear();
        }
      }
      tide.arrive_and_wait();
      if (thread == 0) dropped_at_last = space_.discarded + space_.given_back;
      tide.arrive_and_wait();  // nobody ends before
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(dropped_at_last - dropped_before, base::kMiB);
  EXPECT_LE(heap_.statistics().waiting_bytes, ChunkPool::kDirtyAlways * kGranuleBytes) << "all of them have ended";
}

TEST_F(HeapThreads, AThreadThatEndsLeavesNothingBehind) {
  for (int round = 0; round < 20; ++round) {
    std::thread([&] {
      std::vector<void*> objects;
      for (std::size_t i = 0; i < 3000; ++i) objects.push_back(heap_.allocate(i));
      for (void* object : objects) heap_.free(object);
      EXPECT_EQ(heap_.statistics().thread_caches, 1u);
      EXPECT_GT(heap_.statistics().cached_bytes, 0u);
    }).join();
    Statistics after = heap_.statistics();
    ASSERT_EQ(after.thread_caches, 0u);
    ASSERT_EQ(after.cached_bytes, 0u);
    ASSERT_EQ(after.live_bytes, 0u);
  }
}

// Destructors of thread-specific data that run after the heap's own, and again and again.
struct LateUser {
  Heap* heap;
  pthread_key_t key;
  int rounds;
  void* object;
};

void use_late(void* argument) {
  auto* late = static_cast<LateUser*>(argument);
  late->heap->free(late->object);
  late->object = late->heap->allocate(200);
  std::memset(late->object, 1, 200);
  if (--late->rounds > 0) pthread_setspecific(late->key, late);
  if (late->rounds == 0) late->heap->free(late->object);
}

TEST_F(HeapThreads, DestructorsMayAllocateAfterTheCacheIsGone) {
  LateUser late{&heap_, 0, 3, nullptr};
  ASSERT_EQ(pthread_key_create(&late.key, use_late), 0);  // a later key than the heap's: destroyed after it
  std::thread([&] {
    late.object = heap_.allocate(100);
    pthread_setspecific(late.key, &late);
  }).join();
  EXPECT_EQ(late.rounds, 0);
  EXPECT_EQ(heap_.statistics().thread_caches, 0u);
  EXPECT_EQ(heap_.statistics().live_bytes, 0u);
  pthread_key_delete(late.key);
}

TEST_F(HeapThreads, AfterThreadExitTheThreadWorksOn) {
  void* object = heap_.allocate(50);
  heap_.thread_exit();
  EXPECT_EQ(heap_.statistics().thread_caches, 0u);
  heap_.free(object);
  EXPECT_EQ(heap_.statistics().live_bytes, 0u);
  object = heap_.allocate(50);
  EXPECT_EQ(heap_.statistics().live_bytes, 64u);
  EXPECT_EQ(heap_.statistics().thread_caches, 0u);
  heap_.free(object);
}

// More heaps than a thread has places for them at hand.
class ManyHeaps : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 3 * (kOwnPlaces + kSharedPlaces);
  struct Member {
    SpySpace space{64 * base::kMiB};
    Heap heap{space};
  };
  ManyHeaps() {
    for (std::size_t i = 0; i < kCount; ++i) members_.push_back(std::make_unique<Member>());
  }
  Heap& heap(std::size_t i) { return members_[i % kCount]->heap; }
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(ManyHeaps, AThreadHasACacheOfEach) {
  std::thread([&] {
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < kCount; ++i) {
        void* const object = heap(i).allocate(100);
        ASSERT_TRUE(heap(i).owns(object));
        heap(i).free(object);
        ASSERT_EQ(heap(i).statistics().thread_caches, 1u) << i;
        ASSERT_GT(heap(i).statistics().cached_bytes, 0u) << i;
      }
    }
    heap(kCount - 1).flush_thread_cache();
    heap(kCount - 2).thread_exit();
    EXPECT_EQ(heap(kCount - 1).statistics().cached_bytes, 0u);
    EXPECT_EQ(heap(kCount - 1).statistics().thread_caches, 1u);
    heap(kCount - 2).free(heap(kCount - 2).allocate(100));
    EXPECT_EQ(heap(kCount - 2).statistics().thread_caches, 0u);
  }).join();
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(heap(i).statistics().thread_caches, 0u) << i;
    EXPECT_EQ(heap(i).statistics().cached_bytes, 0u) << i;
  }
}

// Each object is freed by whoever comes by it, while threads and heaps come and go.
TEST_F(ManyHeaps, ThreadsPassObjectsAndHeapsComeAndGo) {
  struct Owned {
    Heap* heap;
    void* object;
  };
  std::mutex mutex;
  std::vector<Owned> passed;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int generation = 0; generation < 5; ++generation) {
        std::thread([&] {
          Member own;
          std::vector<void*> mine;
          for (int i = 0; i < 4000; ++i) {
            Heap& one = heap(random());
            const Owned made{&one, Sealed::make(one, 1 + random() % 2000, static_cast<std::uint32_t>(i))};
            mine.push_back(Sealed::make(own.heap, 64, static_cast<std::uint32_t>(i)));
            Owned taken{nullptr, nullptr};
            {
              std::lock_guard lock(mutex);
              passed.push_back(made);
              if (passed.size() > 200) {
                std::swap(passed[random() % passed.size()], passed.back());
                taken = passed.back();
                passed.pop_back();
              }
            }
            if (taken.heap != nullptr) Sealed::check_and_free(*taken.heap, taken.object);
          }
          for (void* object : mine) Sealed::check_and_free(own.heap, object);
          EXPECT_EQ(own.heap.statistics().live_bytes, 0u);
        }).join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Owned& one : passed) Sealed::check_and_free(*one.heap, one.object);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(heap(i).statistics().live_bytes, 0u) << i;
    std::string why;
    EXPECT_TRUE(heap(i).check(why)) << i << ": " << why;
  }
}

// As the runtime's own heap is used while the program's gives memory back.
class SpaceThatAllocates final : public segment::PageSpace {
 public:
  explicit SpaceThatAllocates(Heap& used) : used_(used) {}
  std::byte* base() const override { return plain_.base(); }
  std::size_t capacity_bytes() const override { return plain_.capacity_bytes(); }
  std::byte* obtain(std::size_t bytes, std::size_t alignment) override { return plain_.obtain(bytes, alignment); }
  bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) override {
    return plain_.extend(at, bytes, new_bytes);
  }
  void give_back(std::byte* at, std::size_t bytes) override {
    use();
    plain_.give_back(at, bytes);
  }
  void discard(std::byte* at, std::size_t bytes) override {
    use();
    plain_.discard(at, bytes);
  }
  std::atomic<bool> watched{false};
  std::atomic<int> uses{0};

 private:
  void use() {
    if (!watched) return;
    ++uses;
    used_.free(used_.allocate(40));
  }
  segment::PlainSpace plain_{base::kGiB};
  Heap& used_;
};

TEST_F(ManyHeaps, WhatAnEndingThreadAllocatesLeavesNoCacheBehind) {
  Heap& first = heap(0);
  SpaceThatAllocates space(first);
  Heap second(space);
  std::thread([&] {
    constexpr std::size_t kSlot = 32 * base::kKiB;  // few of them make a slab
    std::vector<void*> objects;
    for (int i = 0; i < 1000; ++i) objects.push_back(second.allocate(kSlot));
    for (void* object : objects) second.free(object);
    space.watched = true;  // the rest is in the cache, and goes when the thread has ended
  }).join();
  ASSERT_GT(space.uses, 0) << "this tests nothing";
  EXPECT_EQ(first.statistics().thread_caches, 0u);
  EXPECT_EQ(second.statistics().thread_caches, 0u);
}

// Numbers are given again, and a thread that lives on has bindings of heaps that are gone.
TEST_F(ManyHeaps, ANumberIsUsedAgain) {
  for (int round = 0; round < 200; ++round) {
    Member one;
    void* const object = one.heap.allocate(100);
    ASSERT_TRUE(one.heap.owns(object));
    one.heap.free(object);
    ASSERT_EQ(one.heap.statistics().thread_caches, 1u);
    ASSERT_EQ(one.heap.number(), static_cast<int>(kCount));
  }
}

TEST_F(HeapThreads, TheWalkAndTheStatisticsRunBesideTheProgram) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 2; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      while (!stop) {
        std::vector<void*> objects;
        for (int i = 0; i < 500; ++i) objects.push_back(heap_.allocate(1 + random() % 60'000));
        for (void* object : objects) heap_.free(object);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    std::size_t bytes = 0;
    heap_.for_each_object(
        [](void* context, void* object, std::size_t size) {
          EXPECT_NE(object, nullptr);
          *static_cast<std::size_t*>(context) += size;
        },
        &bytes);
    EXPECT_LE(heap_.statistics().live_bytes, 500u * 2 * 65'536);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heap_.statistics().live_bytes, 0u);
}

}  // namespace
}  // namespace farheap::heap
