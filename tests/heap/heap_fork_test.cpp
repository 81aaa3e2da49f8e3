// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forking while other threads are inside the heap: the child must be able to use it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <latch>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "heap/heap.hpp"
#include "segment/plain_space.hpp"

namespace farheap::heap {
namespace {

void churn(Heap& heap, std::latch& started, const std::atomic<bool>& stop, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<void*> objects(2000);
  started.count_down();
  while (!stop) {
    void*& object = objects[random() % objects.size()];
    heap.free(object);
    object = heap.allocate(1 + random() % (random() % 20 == 0 ? 100'000 : 1000));
  }
  for (void* object : objects) heap.free(object);
}

// What the child does; the number of the step that went wrong, or 0.
[[nodiscard]] int use_in_child(Heap& heap, unsigned char* inherited) {
  for (int i = 0; i < 5000; ++i) {
    if (inherited[i] != 0x77) return 1;
  }
  heap.free(inherited);
  std::vector<void*> objects;
  for (std::size_t i = 0; i < 5000; ++i) {
    void* object = heap.allocate(i * 10);
    if (object == nullptr) return 2;
    std::memset(object, 1, i);
    objects.push_back(object);
  }
  for (void* object : objects) heap.free(object);
  int from_thread = 0;
#ifndef __SANITIZE_THREAD__  // it cannot start threads in the child of a process with threads
  std::thread([&] {
    void* object = heap.allocate(10);
    from_thread = object == nullptr ? 3 : 0;
    heap.free(object);
  }).join();
#else
  std::fputs("heap_fork_test: threads in the child NOT TESTED under ThreadSanitizer\n", stderr);
#endif
  return from_thread;
}

TEST(HeapFork, TheChildUsesTheHeapInTheMiddleOfAStorm) {
  segment::PlainSpace space(4 * base::kGiB);
  Heap heap(space);
  std::atomic<bool> stop{false};
  constexpr unsigned kThreads = 3;
  // The storm is in this heap only: a thread inside malloc() at the fork would leave the child a locked one, because
  // the sanitizers' malloc() of GCC 12 does not look after its locks.
  std::latch started(kThreads);
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < kThreads; ++seed) {
    threads.emplace_back([&, seed] { churn(heap, started, stop, seed); });
  }
  started.wait();
  for (int round = 0; round < 15; ++round) {
    auto* inherited = static_cast<unsigned char*>(heap.allocate(5000));
    std::memset(inherited, 0x77, 5000);
    heap.lock_for_fork();
    space.lock_for_fork();
    pid_t child = fork();
    space.unlock_after_fork();
    if (child == 0) {
      heap.unlock_after_fork_child();
      alarm(60);  // a lock that stays held ends the child by a signal, and the test fails
      _exit(use_in_child(heap, inherited));
    }
    heap.unlock_after_fork_parent();
    ASSERT_GT(child, 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(inherited[i], 0x77);
    heap.free(inherited);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heap.statistics().live_bytes, 0u);
}

// The slots in the other thread's cache are lost to the child, and never handed out twice.
TEST(HeapFork, TheChildDoesWithoutWhatAnotherThreadHasFreedButNotGivenBack) {
  segment::PlainSpace space(4 * base::kGiB);
  Heap heap(space);
  std::vector<void*> objects;
  for (int i = 0; i < 200; ++i) objects.push_back(heap.allocate(1000));
  std::vector<void*> kept(objects.begin(), objects.begin() + 100);
  std::latch freed(1), forked(1);
  std::thread other([&] {
    for (auto it = objects.begin() + 100; it != objects.end(); ++it) heap.free(*it);
    freed.count_down();
    forked.wait();
  });
  freed.wait();
  const std::size_t cached = heap.statistics().cached_bytes;
  EXPECT_GT(cached, 0u);
  heap.lock_for_fork();
  space.lock_for_fork();
  const pid_t child = fork();
  space.unlock_after_fork();
  if (child == 0) {
    heap.unlock_after_fork_child();
    alarm(60);
    std::set<void*> live(kept.begin(), kept.end());
    for (int i = 0; i < 1000; ++i) {
      if (!live.insert(heap.allocate(1000)).second) _exit(1);
    }
    for (void* object : live) heap.free(object);
    heap.flush_thread_cache();
    _exit(heap.statistics().live_bytes == 0 && heap.statistics().cached_bytes <= cached ? 0 : 2);
  }
  heap.unlock_after_fork_parent();
  forked.count_down();
  other.join();
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (void* object : kept) heap.free(object);
  EXPECT_EQ(heap.statistics().live_bytes, 0u);
  EXPECT_EQ(heap.statistics().cached_bytes, heap.statistics().classes[class_of(1000)].cached * 1024);
}

// Its binding does not lie where those of the first heaps do.
TEST(HeapFork, TheChildGoesOnWithTheCacheOfTheTwentiethHeap) {
  std::vector<std::unique_ptr<segment::PlainSpace>> spaces;
  std::vector<std::unique_ptr<Heap>> heaps;
  for (int i = 0; i < 20; ++i) {
    spaces.push_back(std::make_unique<segment::PlainSpace>(64 * base::kMiB));
    heaps.push_back(std::make_unique<Heap>(*spaces.back()));
  }
  Heap& heap = *heaps.back();
  ASSERT_GE(heap.number(), kOwnPlaces);
  void* const object = heap.allocate(100);
  heap.lock_for_fork();
  spaces.back()->lock_for_fork();
  const pid_t child = fork();
  spaces.back()->unlock_after_fork();
  if (child == 0) {
    heap.unlock_after_fork_child();
    alarm(60);
    heap.free(object);
    if (heap.statistics().thread_caches != 1 || heap.statistics().cached_bytes == 0) _exit(1);
    if (heap.allocate(100) != object) _exit(2);  // the newest in the cache
    forget_heap_in_child(heap.number());
    _exit(heap.allocate(100) == nullptr ? 3 : 0);
  }
  heap.unlock_after_fork_parent();
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  heap.free(object);
}

}  // namespace
}  // namespace farheap::heap
