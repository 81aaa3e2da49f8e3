// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// heap_on_engine_test URI: heaps in a store that really is elsewhere: what a user does, several processes, and the
// deaths of some of them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <farheap/far_heap.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "heap_folder.hpp"
#include "table_work.hpp"

namespace farheap::testing {
namespace {

std::string base_uri;

// A name of its own for each test, removed before and after.
class HeapOnEngine : public ::testing::Test {
 protected:
  HeapOnEngine() : uri_(base_uri + "-" + ::testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~HeapOnEngine() override {
    const Status removed = Heap::remove(uri_);
    EXPECT_TRUE(removed) << removed.error().message();
    EXPECT_EQ(Heap::open(uri_, kSmall).error().code, ErrorCode::kNotFound);
  }
  void make(int steps) {
    Heap heap = must(Heap::create(uri_, kSmall));
    for (int i = 0; i < steps; ++i) work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  std::string uri_;
  TableWork work_{10};
};

// Runs it in a process of its own, that executes nothing else.
pid_t in_child(const std::function<bool()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  return child;
}

bool ended_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(HeapOnEngine, OutlivesItsProcess) {
  EXPECT_TRUE(ended_well(in_child([&] {
    auto heap = Heap::create(uri_, kSmall);
    if (!heap) std::fprintf(stderr, "%s\n", heap.error().message().c_str());
    for (int i = 0; heap && i < 5; ++i) work_.step(*heap);
    return heap && heap->commit();
  })));
  Heap heap = must(Heap::open_or_create(uri_, kSmall));
  EXPECT_EQ(TableWork::steps_of(heap), 5u);
  EXPECT_EQ(work_.compare(heap), "");
}

TEST_F(HeapOnEngine, IsLargerThanItsMemory) {
  constexpr std::size_t kWords = 6 << 20;  // 48 MiB, of which 32 fit
  {
    Heap heap = must(Heap::create(uri_, kSmall));
    auto* const words = heap.construct<std::uint64_t>("words")[kWords](0u);
    for (std::size_t i = 0; i < kWords; ++i) words[i] = i * 0x9E3779B97F4A7C15u;
    ASSERT_TRUE(heap.commit());
  }
  const Heap heap = must(Heap::open_read_only(uri_, kSmall));
  const auto* const words = heap.find<std::uint64_t>("words");
  ASSERT_NE(words, nullptr);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kWords; ++i) wrong += words[i] != i * 0x9E3779B97F4A7C15u ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
}

TEST_F(HeapOnEngine, SnapshotsAreKeptReadRolledBackToAndRemoved) {
  {
    Heap heap = must(Heap::create(uri_, kSmall));
    work_.step(heap);
    ASSERT_TRUE(heap.snapshot("one"));
    work_.step(heap);
    ASSERT_TRUE(heap.snapshot("two"));
    work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  {
    const Heap heap = must(Heap::open_read_only(uri_ + "@one", kSmall));
    EXPECT_EQ(TableWork::steps_of(heap), 1u);
    EXPECT_EQ(work_.compare(heap), "");
  }
  const auto difference = Heap::diff(uri_ + "@one", uri_ + "@two");
  EXPECT_TRUE(difference) << difference.error().message();
  ASSERT_TRUE(Heap::roll_back(uri_ + "@two"));
  Heap heap = must(Heap::open(uri_, kSmall));
  EXPECT_EQ(TableWork::steps_of(heap), 2u);
  ASSERT_TRUE(heap.remove_snapshot("one"));
  work_.step(heap);
  ASSERT_TRUE(heap.commit());
  EXPECT_EQ(work_.compare(heap), "");
}

TEST_F(HeapOnEngine, AWriterThatWasKilledLosesWhatItDidNotCommit) {
  make(2);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = in_child([&] {
    auto heap = Heap::open(uri_, kSmall);
    if (!heap) return false;
    work_.step(*heap);
    if (!heap->commit()) return false;
    work_.step(*heap);
    const char done = heap->commit() ? 'c' : 'f';
    work_.step(*heap);
    if (write(ends[1], &done, 1) != 1) return false;
    pause();
    return false;
  });
  close(ends[1]);  // so that a child that fails is seen
  char said = 0;
  ASSERT_EQ(read(ends[0], &said, 1), 1);
  EXPECT_EQ(said, 'c');
  const auto refused = Heap::open(uri_, kSmall);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_NE(refused.error().why.find(std::to_string(child)), std::string::npos) << refused.error().message();
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ends[0]);
  Heap heap = must(Heap::open(uri_, kSmall));  // at once: the kernel tells that it has ended
  EXPECT_EQ(TableWork::steps_of(heap), 4u);
  EXPECT_EQ(work_.compare(heap), "");
}

TEST_F(HeapOnEngine, AReaderInAnotherProcessKeepsItsVersion) {
  make(1);
  int go[2], done[2];
  ASSERT_EQ(pipe(go), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = in_child([&] {
    auto heap = Heap::open_read_only(uri_, kSmall);
    char word = 'r';
    if (!heap || write(done[1], &word, 1) != 1 || read(go[0], &word, 1) != 1) return false;
    return TableWork::steps_of(*heap) == 1 && work_.compare(*heap).empty();
  });
  close(go[0]), close(done[1]);
  char word = 0;
  ASSERT_EQ(read(done[0], &word, 1), 1);
  EXPECT_EQ(Heap::remove(uri_).error().code, ErrorCode::kConflict);
  {
    Heap heap = must(Heap::open(uri_, kSmall));
    for (int i = 0; i < 6; ++i) {
      work_.step(heap);
      ASSERT_TRUE(heap.commit());
    }
  }
  ASSERT_EQ(write(go[1], &word, 1), 1);
  EXPECT_TRUE(ended_well(child));
  close(go[1]), close(done[0]);
}

TEST_F(HeapOnEngine, IsCopiedFromAFileAndLookedAt) {
  HeapFolder folder;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    work_.step(heap);
    ASSERT_TRUE(heap.snapshot("one"));
    work_.step(heap);
    ASSERT_TRUE(heap.commit());
  }
  const Status copied = Heap::copy(folder.uri(), uri_);
  ASSERT_TRUE(copied) << copied.error().message();
  const auto facts = Heap::look(uri_);
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_EQ(facts->objects.size(), 2u);
  const Status sound = Heap::check(uri_, {.data = true});
  EXPECT_TRUE(sound) << sound.error().message();
  Heap heap = must(Heap::open(uri_, kSmall));
  EXPECT_EQ(work_.compare(heap), "");
}

// A child has connections of its own.
TEST_F(HeapOnEngine, AForkedChildReadsTheLastCommit) {
  make(3);
  HeapOptions options = kSmall;
  options.in_children = true;
  Heap heap = must(Heap::open(uri_, options));
  work_.step(heap);  // not committed
  EXPECT_TRUE(ended_well(in_child([&] { return TableWork::steps_of(heap) == 3 && work_.compare(heap).empty(); })));
  EXPECT_EQ(TableWork::steps_of(heap), 4u);
  const Status committed = heap.commit();
  EXPECT_TRUE(committed) << committed.error().message();
}

// In a child, whose failures nobody counts.
bool said(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return false;
}

// Seed 000's variant: the allocation pointer is one atomic addition in the store.
TEST(FarHeapOnEngine, ProcessesAllocateFromOneHeapWithoutALock) {
  const std::string uri = base_uri + "-far";
  const FarHeapOptions options{.books = FarHeapOptions::Books::kShared, .capacity = 1_GiB};
  constexpr std::uint64_t kProcesses = 4, kEach = 50;
  std::vector<pid_t> children;
  for (std::uint64_t p = 0; p < kProcesses; ++p) {
    children.push_back(in_child([&] {
      auto heap = FarHeap::open(uri, options);
      if (!heap) return said(heap.error());
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const auto at = heap->allocate(sizeof i);
        if (!at) return said(at.error());
        if (const auto put = heap->put(*at, p << 32 | i); !put) return said(put.error());
      }
      return true;
    }));
  }
  for (const pid_t child : children) EXPECT_TRUE(ended_well(child));
  {
    auto heap = FarHeap::open(uri, options);
    ASSERT_TRUE(heap) << heap.error().message();
    std::set<std::uint64_t> found;
    for (std::uint64_t i = 0; i < kProcesses * kEach; ++i) {
      found.insert(heap->get<std::uint64_t>(heap->begin() + 16 * i).value());
    }
    EXPECT_EQ(found.size(), kProcesses * kEach) << "two had the same address, or a write is lost";
  }
  EXPECT_TRUE(remove_store(uri));
}

}  // namespace
}  // namespace farheap::testing

int main(int count, char** values) {
  ::testing::InitGoogleTest(&count, values);
  if (count != 2) {
    std::puts("usage: heap_on_engine_test URI");
    return 2;
  }
  farheap::testing::base_uri = values[1];
  return RUN_ALL_TESTS();
}
