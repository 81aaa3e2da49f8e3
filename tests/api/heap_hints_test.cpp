// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hints reach the heap they are about: once they were for programs under `farheap run` alone, and a heap that outlives
// its process heard of none.
#include <farheap/farheap.h>
#include <farheap/loop_hint.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <numeric>
#include <thread>
#include <vector>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

constexpr std::size_t kBytes = 4_MiB;
constexpr std::size_t kWords = kBytes / sizeof(std::uint64_t);
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPageWords = kPage / sizeof(std::uint64_t);

class HeapHintsTest : public ::testing::Test {
 protected:
  // All of it is in the store, and nothing in memory.
  void SetUp() override {
    {
      Heap made = must(Heap::create(folder.uri(), kSmall));
      auto* const first = made.construct<std::uint64_t>("words")[kWords]();
      std::iota(first, first + kWords, 1);
      ASSERT_TRUE(made.commit());
    }
    open();
  }
  void open(bool in_children = false) {
    HeapOptions options = kSmall;
    options.in_children = in_children;
    heap.reset();
    heap.emplace(must(Heap::open(folder.uri(), options)));
    words = heap->find<std::uint64_t>("words");
    ASSERT_NE(words, nullptr);
  }
  // Touches every page; the number of faults that it takes.
  std::uint64_t faults_of_a_sweep() {
    const std::uint64_t before = heap->statistics().faults;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < kWords; i += kPageWords) wrong += words[i] != i + 1;
    EXPECT_EQ(wrong, 0u);
    return heap->statistics().faults - before;
  }
  // Without a touch of them. A reader's thread brings them, and tells nobody.
  void wait_until_read(std::uint64_t bytes) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (heap->statistics().bytes_read < bytes && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_GE(heap->statistics().bytes_read, bytes);
  }

  std::uint64_t bytes_of_its_pages() const {
    const auto first = reinterpret_cast<std::uintptr_t>(words);
    return (first + kBytes + kPage - 1) / kPage * kPage - first / kPage * kPage;
  }

  HeapFolder folder;
  std::optional<Heap> heap;
  std::uint64_t* words = nullptr;
};

TEST_F(HeapHintsTest, WhatIsNeededComesBeforeItIsTouched) {
  const std::uint64_t before = heap->statistics().bytes_read;
  const std::uint64_t faults = heap->statistics().faults;
  ASSERT_EQ(farheap_hint(words, kBytes, FARHEAP_WILL_NEED), 0);
  wait_until_read(before + bytes_of_its_pages());
  EXPECT_EQ(heap->statistics().faults, faults);
  EXPECT_EQ(faults_of_a_sweep(), 0u);
}

TEST_F(HeapHintsTest, WhatIsDoneWithLeavesTheView) {
  EXPECT_GT(faults_of_a_sweep(), 0u);
  ASSERT_EQ(faults_of_a_sweep(), 0u) << "there is room for all of it";
  ASSERT_EQ(farheap_hint(words, kBytes, FARHEAP_DONE_WITH), 0);
  EXPECT_GT(faults_of_a_sweep(), 0u);
  std::fill(words, words + kWords, 7);
  ASSERT_EQ(farheap_hint(words, kBytes, FARHEAP_DONE_WITH), 0);
  EXPECT_TRUE(std::all_of(words, words + kWords, [](std::uint64_t word) { return word == 7; }));
  ASSERT_TRUE(heap->commit());
}

TEST_F(HeapHintsTest, WhatWillBeStreamedComesInPiecesFromItsFirstTouchOn) {
  std::uint64_t single = 0;
  for (std::size_t i = 0; i < kWords; i += kWords / 8) single += words[i];  // far from each other: no sweep is seen
  const std::uint64_t alone = heap->statistics().bytes_read;
  open();
  ASSERT_EQ(farheap_hint(words, kBytes, FARHEAP_STREAM), 0);
  std::uint64_t streamed = 0;
  for (std::size_t i = 0; i < kWords; i += kWords / 8) streamed += words[i];
  EXPECT_EQ(single, streamed);
  EXPECT_GE(heap->statistics().bytes_read, 4 * alone);
}

TEST_F(HeapHintsTest, ALoopThatIsSaidIsReadAhead) {
  for (const unsigned way : {0u, unsigned{FARHEAP_LOOP_BACKWARD}}) {
    open();
    const std::uint64_t before = heap->statistics().bytes_read;
    ASSERT_NE(&__farheap_loop, nullptr);
    __farheap_loop(words, kBytes, sizeof(std::uint64_t), FARHEAP_LOOP_READS | way);
    wait_until_read(before + 256_KiB);
  }
}

TEST_F(HeapHintsTest, WhatIsKeptMayBeTakenBack) {
  ASSERT_EQ(farheap_hint(words, kBytes, FARHEAP_KEEP), 0);
  EXPECT_GT(faults_of_a_sweep(), 0u);
  ASSERT_EQ(farheap_hint(words, kBytes, FARHEAP_NORMAL), 0);
  EXPECT_EQ(faults_of_a_sweep(), 0u);
}

TEST_F(HeapHintsTest, AnOrderThatIsSaidComesBeforeItIsTouched) {
  const std::uint64_t before = heap->statistics().bytes_read;
  const auto bytes = [&](std::size_t word) { return reinterpret_cast<const std::byte*>(words + word); };
  const farheap_step steps[] = {{bytes(kWords / 2), kBytes / 2, FARHEAP_BACKWARD},
                                {bytes(0), kBytes / 2, FARHEAP_FORWARD}};
  ASSERT_EQ(farheap_expect_order(steps, 2, FARHEAP_ONCE), 0);
  wait_until_read(before + 256_KiB);
  (void)faults_of_a_sweep();
  const farheap_step nothing = {words, 0, FARHEAP_FORWARD};
  EXPECT_EQ(farheap_expect_order(&nothing, 1, FARHEAP_ONCE), 0);
  EXPECT_EQ(farheap_expect_order(nullptr, 0, FARHEAP_ONCE), 0);
}

TEST_F(HeapHintsTest, WhatIsNoOrderIsRefused) {
  const farheap_step step = {words, kBytes, FARHEAP_FORWARD};
  EXPECT_EQ(farheap_expect_order(&step, 1, 1), -1);
  EXPECT_EQ(farheap_expect_order(nullptr, 1, FARHEAP_ONCE), -1);
  const farheap_step strange = {words, kBytes, 7}, endless = {words, SIZE_MAX, FARHEAP_FORWARD};
  EXPECT_EQ(farheap_expect_order(&strange, 1, FARHEAP_ONCE), -1);
  EXPECT_EQ(farheap_expect_order(&endless, 1, FARHEAP_ONCE), -1);
  const int elsewhere = 0;
  const farheap_step of_none = {&elsewhere, sizeof elsewhere, FARHEAP_FORWARD};
  EXPECT_EQ(farheap_expect_order(&of_none, 1, FARHEAP_ONCE), 1);
  heap.reset();
  EXPECT_EQ(farheap_expect_order(&step, 1, FARHEAP_ONCE), 1);
  EXPECT_EQ(farheap_expect_order(nullptr, 0, FARHEAP_ONCE), 1) << "no heap is open";
}

TEST_F(HeapHintsTest, WhatIsInNoHeapIsForNobody) {
  int elsewhere = 0;
  EXPECT_EQ(farheap_hint(&elsewhere, sizeof elsewhere, FARHEAP_KEEP), 1);
  EXPECT_EQ(farheap_hint(words, 0, FARHEAP_KEEP), 1);
  EXPECT_EQ(farheap_hint(words, kBytes, static_cast<farheap_hint_kind>(6)), -1);
  EXPECT_EQ(farheap_hint(words, SIZE_MAX, FARHEAP_KEEP), 0) << "what lies in the heap is kept";
  heap.reset();
  EXPECT_EQ(farheap_hint(words, kBytes, FARHEAP_WILL_NEED), 1);
  __farheap_loop(words, kBytes, sizeof(std::uint64_t), FARHEAP_LOOP_READS);
}

TEST_F(HeapHintsTest, EachOfSeveralHeapsHearsItsOwn) {
  Heap other = must(Heap::create(folder.uri("other"), kSmall));
  auto* const theirs = other.construct<std::uint64_t>("words")[kWords]();
  ASSERT_TRUE(other.commit());
  const std::uint64_t before = other.statistics().bytes_read;
  ASSERT_EQ(farheap_hint(words, kBytes, FARHEAP_WILL_NEED), 0);
  wait_until_read(kBytes);
  EXPECT_EQ(other.statistics().bytes_read, before);
  EXPECT_EQ(farheap_hint(theirs, kBytes, FARHEAP_DONE_WITH), 0);
}

// Whoever was saying a hint when the child was made is not there to let go of anything.
TEST_F(HeapHintsTest, AForkedChildSaysHintsToNobodyOrToItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: a forked child makes threads, which ThreadSanitizer does not allow";
#endif
  std::vector<bool> with_or_without = {false, true};
#ifdef __SANITIZE_ADDRESS__
  // The sanitizer's allocator may be locked by another thread at the fork, and the child's threads allocate.
  with_or_without.pop_back();
  std::cerr << "SKIPPED, NOT TESTED: children that page for themselves, which AddressSanitizer's allocator does not "
               "survive\n";
#endif
  for (const bool in_children : with_or_without) {
    open(in_children);
    std::atomic<bool> stop{false};
    std::thread saying([&] {
      while (!stop) (void)farheap_hint(words, kBytes, FARHEAP_KEEP);
    });
    for (int i = 0; i < 10; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        _exit(farheap_hint(words, kBytes, FARHEAP_WILL_NEED) == (in_children ? 0 : 1) ? 0 : 1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    stop = true;
    saying.join();
  }
}

}  // namespace
}  // namespace farheap::testing
