// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that allocate, write, construct and destroy beside commits and snapshots, without a pause: whatever object a
// version has is whole, for it has a name only between its construction and its destruction.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

// Some lie in one page, some in several.
template <std::size_t kWords>
struct Filled {
  std::array<std::uint64_t, kWords> words;
  explicit Filled(std::uint64_t seed) {
    for (std::size_t i = 0; i < kWords; ++i) words[i] = seed * kWords + i;
  }
  [[nodiscard]] bool is_whole() const {
    for (std::size_t i = 0; i < kWords; ++i) {
      if (words[i] != words[0] + i) return false;
    }
    return true;
  }
};
using Small = Filled<20>;
using Large = Filled<3000>;

class Worker {
 public:
  Worker(Heap& heap, int number) : heap_(heap), name_(std::to_string(number) + "/"), random_(number) {}

  void step() {
    const std::string name = name_ + std::to_string(random_() % 200);
    switch (random_() % 6) {
      case 0:
      case 1: (void)heap_.construct<Small>("small " + name)(random_()); break;
      case 2: (void)heap_.construct<Large>("large " + name)(random_()); break;
      case 3:
        heap_.destroy<Small>("small " + name);
        heap_.destroy<Large>("large " + name);
        break;
      case 4: exchange(); break;
      default: share(); break;
    }
  }

 private:
  // Memory without a name, grown and given back.
  void exchange() {
    auto* words = static_cast<std::uint64_t*>(heap_.allocate(8 + random_() % 5000));
    if (words == nullptr) return;
    *words = 7;
    words = static_cast<std::uint64_t*>(heap_.reallocate(words, 8 + random_() % 50'000));
    if (words == nullptr || *words != 7) ADD_FAILURE();
    heap_.deallocate(words);
  }
  // All threads want the same ones: one makes it, and all count in it.
  void share() {
    auto* const count = heap_.find_or_construct<std::atomic<std::uint64_t>>("shared")(0u);
    ++*count;
    ++counted_;
    // Another one that comes and goes.
    heap_.destroy_ptr(heap_.construct<Small>(anonymous_instance)(random_()));
  }

  Heap& heap_;
  const std::string name_;
  std::mt19937 random_;

 public:
  std::uint64_t counted_ = 0;
};

std::size_t look_at(const Heap& heap) {
  std::size_t objects = 0;
  heap.for_each_object([&](const ObjectInfo& one) {
    ++objects;
    const bool whole = one.name.starts_with("small ")   ? static_cast<const Small*>(one.address)->is_whole()
                       : one.name.starts_with("large ") ? static_cast<const Large*>(one.address)->is_whole()
                                                        : true;
    EXPECT_TRUE(whole) << one.name;
  });
  return objects;
}

TEST(KeptHeapThreadsTest, WhateverObjectAVersionHasIsWhole) {
  constexpr int kThreads = 3;
  const HeapFolder folder;
  std::uint64_t counted = 0;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> allowed{100};  // steps: so that a slow machine's commits are not drowned
    std::vector<Worker> workers;
    for (int t = 0; t < kThreads; ++t) workers.emplace_back(heap, t);
    std::vector<std::thread> threads;
    for (Worker& worker : workers) {
      threads.emplace_back([&] {
        for (std::uint64_t steps = 0; !stop;) {
          if (steps < allowed) {
            worker.step(), ++steps;
          } else {
            usleep(100);
          }
        }
      });
    }
    for (int i = 0; i < 12; ++i) {
      allowed += 100;
      const std::string name = "s" + std::to_string(i % 4);
      if (i >= 4) {
        ASSERT_TRUE(heap.remove_snapshot(name));
      }
      ASSERT_TRUE(heap.snapshot(name));
      ASSERT_TRUE(i % 6 == 5 ? heap.compact() : heap.commit());
      (void)heap.statistics();
      ASSERT_TRUE(heap.versions());
    }
    stop = true;
    for (auto& thread : threads) thread.join();
    for (const Worker& worker : workers) counted += worker.counted_;
    ASSERT_TRUE(heap.commit());
    look_at(heap);
  }
  ASSERT_TRUE(Heap::check(folder.uri())) << Heap::check(folder.uri()).error().message();
  for (const char* snapshot : {"@s0", "@s1", "@s2", "@s3", ""}) {
    Heap heap = must(Heap::open_read_only(folder.uri() + snapshot, kSmall));
    EXPECT_EQ(look_at(heap), heap.statistics().objects);
    const auto* const count = heap.find<std::atomic<std::uint64_t>>("shared");
    if (*snapshot == '\0') {
      ASSERT_NE(count, nullptr);
      EXPECT_EQ(*count, counted);
    } else if (count != nullptr) {
      EXPECT_LE(*count, counted);
    }
  }
}

// Somebody was always inside of a pause, or looking a name up, and no commit ever came to its turn.
TEST(KeptHeapThreadsTest, WhoPausesOrFindsWithoutAnEndDoesNotKeepACommitWaiting) {
  const HeapFolder folder;
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  auto* const counter = heap.construct<std::atomic<std::uint64_t>>("counter")(0u);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        if (t % 2 == 0) {
          EXPECT_EQ(heap.find<std::atomic<std::uint64_t>>("counter"), counter);
          continue;
        }
        const auto pause = heap.pause();
        for (int i = 0; i < 2000; ++i) ++*counter;
      }
    });
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(heap.commit());
  stop = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace farheap::testing
