// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A heap in a kept segment: cut off at any instant with the gate closed, it goes on in the next process with all that
// was allocated, and loses no more than what each thread was just getting or giving up.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <latch>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kept_segment.hpp"

namespace farheap::heap {
namespace {

// Stops threads between any two of their instructions: a signal's handler waits until they may go on.
class Freezer {
 public:
  static void install() {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      int saved_errno = errno;
      s_frozen.fetch_add(1);
      while (s_hold.load()) sched_yield();
      s_frozen.fetch_sub(1);
      errno = saved_errno;
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
  }
  static void freeze(std::vector<std::thread>& threads) {
    s_hold = true;
    for (std::thread& thread : threads) pthread_kill(thread.native_handle(), SIGUSR1);
    while (s_frozen.load() != threads.size()) sched_yield();
  }
  static void thaw() {
    s_hold = false;
    while (s_frozen.load() != 0) sched_yield();
  }

 private:
  static inline std::atomic<bool> s_hold{false};
  static inline std::atomic<std::size_t> s_frozen{0};
};

// What one thread knows to have; changed only outside of the heap's calls. A record goes before its object is given up
// and comes after it was filled, so what is recorded is allocated at any instant. (Slots are reused: no malloc.)
struct Record {
  std::atomic<unsigned char*> at{nullptr};
  std::size_t bytes = 0;
  unsigned char pattern = 0;
};
struct Model {
  std::array<Record, 1500> records;
};

void fill(unsigned char* at, std::size_t bytes, unsigned char pattern) {
  at[0] = at[bytes / 2] = at[bytes - 1] = pattern;  // three places: the pages between stay untouched
}
[[nodiscard]] bool is_filled(const unsigned char* at, std::size_t bytes, unsigned char pattern) {
  return at[0] == pattern && at[bytes / 2] == pattern && at[bytes - 1] == pattern;
}

class Worker {
 public:
  Worker(Heap& heap, Model& model, unsigned seed) : heap_(heap), model_(model), random_(seed) {}

  void step() {
    Record& record = model_.records[random_() % model_.records.size()];
    unsigned char* old = record.at.load(std::memory_order_relaxed);
    unsigned what = random_() % 100;
    if (what == 0) heap_.flush_thread_cache();
    if (what == 1 && random_() % 20 == 0) heap_.purge();
    if (old == nullptr) {
      std::size_t bytes = size();
      void* made = what % 8 == 0   ? heap_.allocate_aligned(bytes, 256)
                   : what % 8 == 1 ? heap_.allocate_zeroed(bytes)
                                   : heap_.allocate(bytes);
      note(record, made, bytes);
    } else {
      forget(record);
      if (what < 10) {
        std::size_t bytes = size();
        note(record, heap_.reallocate(old, bytes), bytes);
      } else {
        heap_.free(old);
      }
    }
  }

 private:
  std::size_t size() {
    unsigned kind = random_() % 100;
    if (kind == 0) return 1 + random_() % (3 * base::kMiB);
    if (kind < 6) return 1 + random_() % 200'000;
    return 1 + random_() % (kind < 60 ? 128 : 4000);
  }
  void note(Record& record, void* made, std::size_t bytes) {
    if (made == nullptr) return;
    record.bytes = bytes;
    record.pattern = static_cast<unsigned char>(random_() | 1);
    fill(static_cast<unsigned char*>(made), bytes, record.pattern);
    record.at.store(static_cast<unsigned char*>(made), std::memory_order_release);
  }
  static void forget(Record& record) {
    record.at.store(nullptr, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  Heap& heap_;
  Model& model_;
  std::mt19937 random_;
};

// A cut and what was known at that instant.
struct Cut {
  SegmentCopy segment;
  struct Object {
    unsigned char* at;
    std::size_t bytes;
    unsigned char pattern;
  };
  std::vector<Object> objects;
};

constexpr unsigned kThreads = 4;

class KeptHeap : public testing::Test {
 protected:
  static void SetUpTestSuite() { Freezer::install(); }

  void work(unsigned seed) {
    Worker worker(segment_->heap(), models_[seed % kThreads], seed);
    started_.fetch_add(1);
    for (std::size_t steps = 0; !stop_.load(std::memory_order_relaxed); ++steps) {
      worker.step();
      steps_.fetch_add(1, std::memory_order_relaxed);
#ifdef __SANITIZE_THREAD__
      if (hold_.load(std::memory_order_acquire)) {
        held_.fetch_add(1);
        while (hold_.load(std::memory_order_acquire)) sched_yield();
        held_.fetch_sub(1);
      }
#endif
    }
    held_.fetch_add(1);
    while (!end_.load()) sched_yield();  // ends when the segment is long gone
  }

  Cut cut() {
#ifdef __SANITIZE_THREAD__  // it delays signals until the next call that it knows: such a thread is between its steps
    hold_ = true;
    while (held_.load() != kThreads) sched_yield();
    segment_->gate().close();
#else
    segment_->gate().close();
    Freezer::freeze(threads_);
#endif
    Cut made{segment_->copy(), {}};
    for (Model& model : models_) {
      for (Record& record : model.records) {
        if (unsigned char* at = record.at.load(std::memory_order_acquire); at != nullptr)
          made.objects.push_back({at, record.bytes, record.pattern});
      }
    }
#ifdef __SANITIZE_THREAD__
    segment_->gate().open();
    hold_ = false;
    while (held_.load() != 0) sched_yield();
#else
    Freezer::thaw();
    segment_->gate().open();
#endif
    return made;
  }

  void run(unsigned seed, unsigned cuts, std::vector<Cut>& made) {
    std::mt19937 random(seed);
    segment_.emplace();
    ASSERT_TRUE(segment_->heap().usable());
    for (unsigned i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, seed, i] { work(seed * kThreads + i); });
    }
    while (started_ != kThreads) sched_yield();
    for (unsigned i = 0; i < cuts; ++i) {
      for (std::size_t until = steps_ + 2000 + random() % 8000; steps_ < until;) {
        for (unsigned wait = random() % 1000; wait > 0; --wait) __builtin_ia32_pause();
      }
      made.push_back(cut());
    }
    stop_ = true;
    while (held_ != kThreads) sched_yield();
    segment_->heap().detach();
    segment_.reset();
  }
  void TearDown() override {
    stop_ = end_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  std::optional<KeptSegment> segment_;
  std::array<Model, kThreads> models_;
  std::vector<std::thread> threads_;
  std::atomic<unsigned> started_{0};
  std::atomic<unsigned> held_{0};
  std::atomic<bool> hold_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> end_{false};
  std::atomic<std::size_t> steps_{0};
};

[[nodiscard]] std::map<void*, std::size_t> objects_of(Heap& heap) {
  std::map<void*, std::size_t> found;
  heap.for_each_object(
      [](void* context, void* object, std::size_t bytes) {
        static_cast<std::map<void*, std::size_t>*>(context)->emplace(object, bytes);
      },
      &found);
  return found;
}

void expect_sound(const Heap& heap, const KeptRange& kept, const char* when) {
  std::string why;
  EXPECT_TRUE(heap.check(why, kept)) << when << ": " << why;
}

void use(Heap& heap, unsigned seed) {
  Model model;  // 36 KiB
  Worker worker(heap, model, seed);
  for (int i = 0; i < 3000; ++i) worker.step();
  for (Record& record : model.records) heap.free(record.at);
}

// What the next process finds and does.
void live_on(const Cut& cut, unsigned seed) {
  KeptSegment segment(cut.segment);
  Heap& heap = segment.heap();
  expect_sound(heap, segment.range(), "before it is attached");
  segment.attach();
  expect_sound(heap, segment.range(), "attached");
  EXPECT_EQ(heap.statistics().cached_bytes, 0u);
  std::map<void*, std::size_t> left = objects_of(heap);
  for (const Cut::Object& object : cut.objects) {
    ASSERT_EQ(left.erase(object.at), 1u) << "lost, or two have it";
    ASSERT_GE(heap.usable_size(object.at), object.bytes);
    ASSERT_TRUE(is_filled(object.at, object.bytes, object.pattern));
  }
  EXPECT_LE(left.size(), 2 * kThreads) << "one a thread was on its way, or two of a reallocation";
  use(heap, seed);
  std::thread([&] { use(heap, seed + 1); }).join();
  for (const Cut::Object& object : cut.objects) {
    ASSERT_TRUE(is_filled(object.at, object.bytes, object.pattern)) << "somebody else got it";
    heap.free(object.at);
  }
  for (auto& [object, bytes] : left) heap.free(object);
  heap.flush_thread_cache();
  heap.purge();
  expect_sound(heap, segment.range(), "all freed");
  Statistics sum = heap.statistics();
  EXPECT_EQ(sum.live_bytes, 0u);
  EXPECT_EQ(sum.waiting_bytes, 0u);
  // An empty bin may keep a slab, so some chunks stay.
  std::size_t held = KeptSegment::kPagesBytes - segment.runs().free_bytes();
  EXPECT_LE(held, base::round_up(sum.slab_bytes, kChunkBytes) * 2 + kChunkBytes);
  heap.detach();
}

class KeptHeapRandom : public KeptHeap, public testing::WithParamInterface<unsigned> {};

TEST_P(KeptHeapRandom, GoesOnFromAnyInstant) {
#ifdef __SANITIZE_THREAD__
  std::fputs("kept_heap_test: cuts in the middle of a call NOT TESTED under ThreadSanitizer\n", stderr);
#endif
  std::vector<Cut> cuts;
  run(GetParam(), 12, cuts);
  for (const Cut& cut : cuts) {
    live_on(cut, GetParam());
    if (HasFatalFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, KeptHeapRandom, testing::Values(1u, 2u, 3u, 4u));

// Generation after generation, from the state the one before was cut in; nothing piles up.
TEST_F(KeptHeap, LosesNothingOverManyProcesses) {
  std::optional<SegmentCopy> last;
  std::size_t books = 0;
  for (unsigned generation = 0; generation < 30; ++generation) {
    auto place = last ? std::make_unique<KeptSegment>(*last) : std::make_unique<KeptSegment>();
    KeptSegment& segment = *place;
    if (last) segment.attach();
    Heap& heap = segment.heap();
    expect_sound(heap, segment.range(), "attached");
    EXPECT_TRUE(objects_of(heap).empty());
    std::latch done(3), copied(1);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        use(heap, generation * 3 + i);
        done.count_down();
        copied.wait();
      });
    }
    done.wait();
    segment.gate().close();
    last = segment.copy();  // with full caches of threads that live
    segment.gate().open();
    copied.count_down();
    for (std::thread& thread : threads) thread.join();
    if (generation == 1) books = reinterpret_cast<KeptBooks*>(segment.base() - KeptSegment::kBooksBytes)->books_used;
    if (generation > 1) {
      EXPECT_EQ(reinterpret_cast<KeptBooks*>(segment.base() - KeptSegment::kBooksBytes)->books_used, books);
    }
    heap.detach();
  }
}

TEST_F(KeptHeap, GoesOnWithFewerAndMoreProcessors) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  }
  for (bool fewer_later : {true, false}) {
    std::optional<SegmentCopy> kept;
    void* object = nullptr;
    ASSERT_EQ(sched_setaffinity(0, sizeof one, fewer_later ? &all : &one), 0);
    {
      KeptSegment segment;
      object = segment.heap().allocate(100);
      kept = segment.copy();
      segment.heap().detach();
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, fewer_later ? &one : &all), 0);
    KeptSegment segment(*kept);
    segment.attach();
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 8; ++i) threads.emplace_back([&, i] { use(segment.heap(), i); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(segment.heap().usable_size(object), class_of(100) != 0 ? 112u : 0u);
    segment.heap().free(object);
    segment.heap().flush_thread_cache();
    EXPECT_EQ(segment.heap().statistics().live_bytes, 0u);
    expect_sound(segment.heap(), segment.range(), "used by eight threads");
    segment.heap().detach();
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

// A thread that ends calls into the heap of its binding; that one's memory may be gone, or be another heap's.
TEST_F(KeptHeap, ThreadsOfTheFormerUseEndLater) {
  for (bool another_comes : {false, true}) {
    auto segment = std::make_unique<KeptSegment>();
    std::optional<SegmentCopy> copy;
    std::latch used(3), gone(1);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        (void)segment->heap().allocate(50);
        used.count_down();
        gone.wait();
      });
    }
    used.wait();
    copy = segment->copy();
    segment->heap().detach();
    segment.reset();
    if (another_comes) {
      segment = std::make_unique<KeptSegment>(*copy);
      segment->attach();
    }
    gone.count_down();
    for (std::thread& thread : threads) thread.join();
    if (another_comes) {
      expect_sound(segment->heap(), segment->range(), "after the threads' ends");
      EXPECT_EQ(segment->heap().statistics().live_bytes, 3 * 64u);
      segment->heap().detach();
    }
  }
}

TEST_F(KeptHeap, ThreadsEndWhileItIsDetached) {
  for (int round = 0; round < 100; ++round) {
    auto segment = std::make_unique<KeptSegment>();
    std::latch used(3);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        (void)segment->heap().allocate(50);
        used.count_down();
      });
    }
    used.wait();
    segment->heap().detach();
    segment.reset();
    for (std::thread& thread : threads) thread.join();
  }
}

#ifndef __SANITIZE_THREAD__  // it cannot start threads in the child of a process with threads
TEST_F(KeptHeap, AChildOfForkClosesTheGateOfItsOwn) {
  KeptSegment segment;
  Heap& heap = segment.heap();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::latch started(2);
  for (unsigned i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      auto model = std::make_unique<Model>();
      Worker worker(heap, *model, i);
      started.count_down();
      while (!stop) worker.step();
    });
  }
  started.wait();
  for (int round = 0; round < 20; ++round) {
    heap.lock_for_fork();
    pid_t child = fork();
    if (child == 0) {
      heap.unlock_after_fork_child();
      segment.gate().close();
      segment.gate().open();
      heap.free(heap.allocate(100'000));
      _exit(0);
    }
    heap.unlock_after_fork_parent();
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  heap.detach();
}
#endif

}  // namespace
}  // namespace farheap::heap
