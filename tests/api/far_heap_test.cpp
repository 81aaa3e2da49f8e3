// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The heap of translated programs: what is allocated does not overlap, what is written is read, from one process and
// from several.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <farheap/far_heap.hpp>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

const FarHeapOptions kLocal{.capacity = 1_GiB, .cache_bytes = 64 << 10};
const FarHeapOptions kShared{.books = FarHeapOptions::Books::kShared, .capacity = 1_GiB, .cache_bytes = 64 << 10};

FarHeap opened(const std::string& uri, const FarHeapOptions& options) {
  auto heap = FarHeap::open(uri, options);
  if (!heap) throw std::runtime_error(heap.error().message());
  return std::move(*heap);
}

using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t bytes, unsigned seed) {
  Bytes made(bytes);
  std::mt19937 random(seed);
  for (auto& byte : made) byte = std::byte(random());
  return made;
}

TEST(FarHeap, WordsAreReadAsTheyWereWritten) {
  FarHeap heap = opened("mem:", kLocal);
  void* const at = heap.allocate(100).value();
  EXPECT_TRUE(heap.owns(at));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 16, 0u);
  ASSERT_TRUE(heap.put(at, 42));
  ASSERT_TRUE(heap.put(static_cast<std::byte*>(at) + 8, 4.5));
  EXPECT_EQ(heap.get<int>(at).value(), 42);
  EXPECT_EQ(heap.get<double>(static_cast<std::byte*>(at) + 8).value(), 4.5);
}

// What a flush could not make durable may be lost, and the next one, which succeeds, would not tell.
TEST(FarHeap, AfterAFlushThatLostWhatWasWrittenNoneSucceeds) {
  FarHeap heap = opened("faulty+mem:?sync_lost=0.5&seed=1", kLocal);
  void* const at = heap.allocate(1000).value();
  bool has_failed = false;
  for (int i = 0; i < 32; ++i) {
    ASSERT_TRUE(heap.put(at, i));
    const Status flushed = heap.flush();
    EXPECT_TRUE(!has_failed || !flushed) << "flush " << i;
    has_failed = has_failed || !flushed;
  }
  EXPECT_TRUE(has_failed);
}

// An access that a translator has missed must not go unnoticed.
TEST(FarHeap, AnAccessThatWasNotTranslatedIsAFault) {
  FarHeap heap = opened("mem:", kLocal);
  auto* const at = static_cast<volatile int*>(heap.allocate(100).value());
  EXPECT_DEATH(*at = 1, "");
}

TEST(FarHeap, AlignedObjectsAreAligned) {
  FarHeap heap = opened("mem:", kLocal);
  std::map<std::byte*, std::size_t> all;
  for (std::size_t alignment = 16; alignment <= 65536; alignment *= 4) {
    for (const std::size_t bytes : {1, 100, 5000, 100000}) {
      auto* const at = static_cast<std::byte*>(heap.allocate_aligned(bytes, alignment).value());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % alignment, 0u);
      all.emplace(at, bytes);
    }
  }
  for (auto one = all.begin(); std::next(one) != all.end(); ++one) {
    EXPECT_LE(one->first + one->second, std::next(one)->first);
  }
}

TEST(FarHeap, AnAddressInTheMiddleTellsHowFarItsObjectGoes) {
  FarHeap heap = opened("mem:", kLocal);
  EXPECT_EQ(heap.bytes_from(heap.begin() + (512 << 20)).error().code, ErrorCode::kNotFound);
  for (const std::size_t bytes : {1, 24, 1000, 30000, 100000, 5000000}) {
    auto* const at = static_cast<std::byte*>(heap.allocate(bytes).value());
    const std::size_t all = heap.bytes_from(at).value();
    EXPECT_GE(all, bytes);
    EXPECT_EQ(heap.bytes_from(at + bytes - 1).value(), all - bytes + 1);
    auto* const next = static_cast<std::byte*>(heap.allocate(bytes).value());
    EXPECT_TRUE(at + all <= next || next + all <= at);
  }
}

TEST(FarHeap, DirectHeapsBehaveAlike) {
  FarHeapOptions options = kLocal;
  options.is_direct = true;
  FarHeap heap = opened("mem:", options);
  auto* const at = static_cast<std::byte*>(heap.allocate(20000).value());
  const Bytes written = pattern(20000, 5);
  ASSERT_TRUE(heap.write(at, written));
  ASSERT_TRUE(heap.put(at + 4000, 42));
  Bytes read(20000);
  ASSERT_TRUE(heap.read(at, read));
  EXPECT_EQ(heap.get<int>(at + 4000).value(), 42);
  std::memcpy(read.data() + 4000, written.data() + 4000, sizeof(int));
  EXPECT_EQ(read, written);
}

TEST(FarHeap, WhatIsOutsideIsRefused) {
  FarHeap heap = opened("mem:", kLocal);
  int local = 0;
  EXPECT_EQ(heap.put(&local, 1).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(heap.get<int>(heap.end()).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(heap.get<int>(heap.end() - 2).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(heap.get<int>(heap.begin() - 4).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(heap.free(&local));
  EXPECT_TRUE(heap.free(nullptr));
}

// malloc, calloc, realloc and free at random, with less in memory than there is, against copies in memory.
TEST(FarHeap, BehavesAsMallocDoes) {
  HeapFolder folder;
  FarHeap heap = opened("file:" + folder.file(""), kLocal);
  std::map<void*, Bytes> model;
  std::mt19937 random(11);
  const auto some = [&] { return std::next(model.begin(), random() % model.size()); };
  for (unsigned step = 0; step < 3000; ++step) {
    const std::size_t bytes = random() % (random() % 10 == 0 ? 100000 : 600) + 1;
    switch (model.empty() ? 0 : random() % 5) {
      case 0: {
        void* const at = heap.allocate(bytes).value();
        ASSERT_TRUE(model.emplace(at, pattern(bytes, step)).second);
        ASSERT_TRUE(heap.write(at, model[at]));
        break;
      }
      case 1: {
        void* const at = heap.allocate_zeroed(bytes, 1).value();
        ASSERT_TRUE(model.emplace(at, Bytes(bytes)).second);
        break;
      }
      case 2: {
        const auto old = some();
        Bytes contents = old->second;
        void* const at = heap.reallocate(old->first, bytes).value();
        model.erase(old);
        contents.resize(std::min(contents.size(), bytes));
        const Bytes rest = pattern(bytes - contents.size(), step);
        ASSERT_TRUE(heap.write(static_cast<std::byte*>(at) + contents.size(), rest));
        contents.insert(contents.end(), rest.begin(), rest.end());
        ASSERT_TRUE(model.emplace(at, std::move(contents)).second);
        break;
      }
      case 3: {
        const auto old = some();
        ASSERT_TRUE(heap.free(old->first));
        model.erase(old);
        break;
      }
      default: {
        const auto one = some();
        Bytes found(one->second.size());
        ASSERT_TRUE(heap.read(one->first, found));
        ASSERT_EQ(found, one->second) << step;
      }
    }
  }
  ASSERT_TRUE(heap.flush());
  for (const auto& [at, contents] : model) {
    Bytes found(contents.size());
    ASSERT_TRUE(heap.read(at, found));
    EXPECT_EQ(found, contents);
  }
}

TEST(FarHeap, WhatIsFreedIsUsedAgain) {
  FarHeap heap = opened("mem:", {.capacity = 64_MiB});
  const Bytes large(8_MiB, std::byte{1});
  for (int i = 0; i < 50; ++i) {
    auto at = heap.allocate(large.size());
    ASSERT_TRUE(at) << i << ": " << at.error().message();
    ASSERT_TRUE(heap.write(*at, large));
    ASSERT_TRUE(heap.free(*at));
  }
  EXPECT_EQ(heap.allocate(65_MiB).error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(heap.allocate_zeroed(SIZE_MAX / 2, 3).error().code, ErrorCode::kNoSpace);
}

#ifdef __SANITIZE_THREAD__
constexpr bool kMayFork = false;
#else
constexpr bool kMayFork = true;
#endif

// Without a lock between them: each gets addresses that nobody else gets, and bytes side by side in one block stay.
TEST(FarHeap, FourProcessesAllocateFromOneHeap) {
  if (!kMayFork) GTEST_SKIP() << "SKIPPED under ThreadSanitizer: children that make threads";
  HeapFolder folder;
  const std::string uri = "lmdb:" + folder.file("far.mdb") + "?sync=asked";
  constexpr int kProcesses = 4, kEach = 100;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      FarHeap heap = opened(uri, kShared);
      for (int i = 0; i < kEach; ++i) {
        const std::uint64_t value = static_cast<std::uint64_t>(p) << 32 | static_cast<std::uint64_t>(i);
        const auto at = heap.allocate(8);
        if (!at || !heap.put(*at, value)) _exit(1);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  FarHeap heap = opened(uri, kShared);
  std::map<std::uint64_t, int> found;
  for (int i = 0; i < kProcesses * kEach; ++i) ++found[heap.get<std::uint64_t>(heap.begin() + 16 * i).value()];
  EXPECT_EQ(found.size(), static_cast<std::size_t>(kProcesses * kEach))
      << "two had the same address, or a write is lost";
}

TEST(FarHeap, ASharedHeapIsTheSameForTwoHandlesOneAfterTheOther) {
  HeapFolder folder;
  const std::string uri = "lmdb:" + folder.file("far.mdb") + "?sync=asked";
  void* at = nullptr;
  {
    FarHeap one = opened(uri, kShared);
    at = one.allocate(100000).value();
    ASSERT_TRUE(one.write(at, pattern(100000, 1)));
    EXPECT_EQ(one.get<int>(one.allocate_zeroed(10, 4).value()).value(), 0);
  }
  FarHeap two = opened(uri, kShared);
  Bytes found(100000);
  ASSERT_TRUE(two.read(at, found));
  EXPECT_EQ(found, pattern(100000, 1));
  EXPECT_NE(two.allocate(8).value(), at);
  EXPECT_EQ(two.reallocate(at, 10).error().code, ErrorCode::kInvalidArgument) << "its size is known to who made it";
}

TEST(FarHeap, AStoreThatEndsWithItsProcessIsNotShared) {
  const auto heap = FarHeap::open("mem:", kShared);
  ASSERT_FALSE(heap);
  EXPECT_EQ(heap.error().code, ErrorCode::kInvalidArgument) << heap.error().message();
}

TEST(FarHeap, ThreadsShareIt) {
  FarHeap heap = opened("mem:", kLocal);
  const auto work = [&](unsigned me) {
    std::vector<std::pair<void*, Bytes>> mine;
    for (unsigned i = 0; i < 200; ++i) {
      mine.emplace_back(heap.allocate(10 + i).value(), pattern(10 + i, me * 1000 + i));
      EXPECT_TRUE(heap.write(mine.back().first, mine.back().second));
    }
    for (const auto& [at, contents] : mine) {
      Bytes found(contents.size());
      EXPECT_TRUE(heap.read(at, found));
      EXPECT_EQ(found, contents);
      EXPECT_TRUE(heap.free(at));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) threads.emplace_back(work, t);
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace farheap::testing
