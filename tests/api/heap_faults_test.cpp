// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commits that fail: the version before stands, the heap goes on in memory, and a later commit takes everything in.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "heap_folder.hpp"
#include "heap_on_store.hpp"
#include "table_work.hpp"

namespace farheap::testing {
namespace {

// Fails one call, or refuses to keep more; never what is read, which would end the program.
class FailingStore final : public store::Decorator {
 public:
  enum class How { kError, kNoSpace, kUnknown };
  // The plan outlives the store.
  struct Plan {
    std::atomic<std::int64_t> calls_until{-1};  // puts, erasures and syncs; then one of them fails. -1: none
    std::atomic<bool> all_after{false};         // and all that follow
    std::atomic<How> how{How::kError};
    std::atomic<std::uint64_t> failed{0};
    void heal() { calls_until = -1; }
  };
  FailingStore(std::unique_ptr<Store> below, Plan& plan) : Decorator("failing", std::move(below)), plan_(plan) {}

  Status put(std::span<Put> batch) override {
    if (!is_hit()) return inner_->put(batch);
    const How how = plan_.how;
    // What nobody knows of has happened.
    if (how == How::kUnknown) (void)inner_->put(batch);
    for (Put& one : batch) {
      one.outcome = how == How::kError     ? Outcome::kFailed
                    : how == How::kNoSpace ? Outcome::kNoSpace
                                           : Outcome::kUnknown;
    }
    return failed("cannot write");
  }
  Status erase(std::uint64_t first, std::uint64_t count) override {
    return is_hit() ? failed("cannot erase") : inner_->erase(first, count);
  }
  Status sync() override { return is_hit() ? failed("cannot sync") : inner_->sync(); }

 private:
  bool is_hit() {
    std::int64_t left = plan_.calls_until;
    while (left > 0) {
      if (plan_.calls_until.compare_exchange_weak(left, left - 1)) return false;
    }
    if (left < 0) return false;
    if (!plan_.all_after) plan_.calls_until = -1;
    ++plan_.failed;
    return true;
  }
  Status failed(const char* what) const {
    switch (plan_.how) {
      case How::kNoSpace: return fail(ErrorCode::kNoSpace, what, describe(), "as asked: full");
      case How::kUnknown: return fail(ErrorCode::kUnknown, what, describe(), "as asked: no answer");
      default: return fail(ErrorCode::kIo, what, describe(), "as asked");
    }
  }
  Plan& plan_;
};

// What another process sees of the newest commit. Nothing of this process's heap is in the child.
struct Seen {
  std::uint64_t steps = 0;
  std::string wrong;
};
Seen seen_by_a_reader(const std::string& uri, const TableWork& work) {
  int ends[2];
  if (pipe(ends) != 0) return {0, "no pipe"};
  const pid_t child = fork();
  if (child == 0) {
    Seen seen;
    auto heap = Heap::open_read_only(uri, kSmall);
    seen.wrong = heap ? work.compare(*heap) : heap.error().message();
    if (heap) seen.steps = TableWork::steps_of(*heap);
    const std::string answer = std::to_string(seen.steps) + " " + seen.wrong;
    _exit(write(ends[1], answer.data(), answer.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string answer;
  char part[256];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) answer.append(part, static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  const std::size_t space = answer.find(' ');
  if (space == answer.npos) return {0, "the reader said nothing"};
  return {std::stoull(answer), answer.substr(space + 1)};
}

class HeapFaultsTest : public ::testing::Test {
 protected:
  const HeapFolder folder;
  const TableWork work{6};
};

struct Fault {
  const char* name;
  FailingStore::How how;
  ErrorCode code;
  bool all_after;
};

class FailedCommitTest : public HeapFaultsTest, public ::testing::WithParamInterface<Fault> {};

// One commit after the other, the first fails at its first call to the store, the next at its second, and so on until
// one needs no more calls.
TEST_P(FailedCommitTest, WhereverItFailsTheFormerVersionStandsAndTheNextCommitTakesAllIn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: a forked child makes threads, which ThreadSanitizer does not allow";
#endif
  FailingStore::Plan plan;
  plan.how = GetParam().how;
  plan.all_after = GetParam().all_after;
  const HeapsOn failing([&](const api::HeapPlace& place) -> Result<std::unique_ptr<Store>> {
    auto below = open_store(place.uri, {.lifetime = Lifetime::kKeep});
    if (!below) return below;
    return std::make_unique<FailingStore>(std::move(*below), plan);
  });
  std::uint64_t failures = 0;
  std::uint64_t steps = 0;
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    for (std::int64_t call = 0, fine = 0; fine < 4; ++call) {
      ASSERT_LT(call, 200) << "a commit of so many calls";
      work.step(heap);
      ++steps;
      plan.failed = 0;
      plan.calls_until = call;
      const bool is_snapshot = call % 4 == 1;
      const Status status = is_snapshot ? heap.snapshot("s" + std::to_string(steps)) : heap.commit();
      const bool hit = plan.failed != 0;
      plan.heal();
      fine += !hit;
      if (status) {
        // Only giving space back may fail without a word.
        const Seen seen = seen_by_a_reader(folder.uri(), work);
        EXPECT_EQ(seen.wrong, "");
        EXPECT_EQ(seen.steps, steps);
        continue;
      }
      ++failures;
      EXPECT_TRUE(hit);
      EXPECT_FALSE(status.error().message().empty());
      if (status.error().code != ErrorCode::kUnknown) {
        EXPECT_EQ(status.error().code, GetParam().code) << status.error().message();
      }
      const Seen seen = seen_by_a_reader(folder.uri(), work);
      EXPECT_EQ(seen.wrong, "");
      if (status.error().code != ErrorCode::kUnknown) {
        EXPECT_EQ(seen.steps, steps - 1) << status.error().message();
      } else {
        EXPECT_TRUE(seen.steps == steps - 1 || seen.steps == steps) << seen.steps;
      }
      // It goes on in memory, and the next commit takes both in.
      work.step(heap);
      ++steps;
      const Status next = heap.commit();
      ASSERT_TRUE(next) << next.error().message();
      EXPECT_EQ(seen_by_a_reader(folder.uri(), work).steps, steps);
    }
    EXPECT_EQ(work.compare(heap), "");
  }
  EXPECT_GT(failures, 2u);
  EXPECT_TRUE(Heap::check(folder.uri())) << Heap::check(folder.uri()).error().message();
}

INSTANTIATE_TEST_SUITE_P(Faults, FailedCommitTest,
                         ::testing::Values(Fault{"Error", FailingStore::How::kError, ErrorCode::kIo, false},
                                           Fault{"DeadDevice", FailingStore::How::kError, ErrorCode::kIo, true},
                                           Fault{"FullDisk", FailingStore::How::kNoSpace, ErrorCode::kNoSpace, true},
                                           Fault{"NoAnswer", FailingStore::How::kUnknown, ErrorCode::kUnknown, false}),
                         [](const auto& one) { return one.param.name; });

// What was not committed when the device died is lost, and nothing else.
TEST_F(HeapFaultsTest, AHeapClosedAfterAFailedCommitOpensAtTheFormerOne) {
  FailingStore::Plan plan;
  plan.all_after = true;
  {
    const HeapsOn failing([&](const api::HeapPlace& place) -> Result<std::unique_ptr<Store>> {
      return std::make_unique<FailingStore>(open_store(place.uri, {.lifetime = Lifetime::kKeep}).value(), plan);
    });
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    for (int i = 0; i < 5; ++i) work.step(heap);
    ASSERT_TRUE(heap.commit());
    work.step(heap);
    plan.calls_until = 0;
    EXPECT_FALSE(heap.commit());
    EXPECT_FALSE(heap.snapshot("one"));
    EXPECT_FALSE(heap.compact());
  }
  EXPECT_TRUE(Heap::check(folder.uri())) << Heap::check(folder.uri()).error().message();
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  EXPECT_EQ(TableWork::steps_of(heap), 5u);
  EXPECT_EQ(work.compare(heap), "");
  EXPECT_EQ(heap.versions().value().size(), 1u);
}

// In a child, which answers with a sentence: it may mount, or lower its limits. Empty: all is well.
std::string in_a_child(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = work();
    _exit(write(ends[1], said.data(), said.size()) < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string answer;
  char part[512];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) answer.append(part, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? answer : "the child ended with " + std::to_string(status);
}

// Commits fail for want of space, until `make_room` has made some.
std::string go_on_when_full(const std::string& uri, const TableWork& work, ErrorCode expected,
                            const std::function<void()>& make_room) {
  std::uint64_t committed = 0;
  {
    auto heap = Heap::create(uri, kSmall);
    if (!heap) return "create: " + heap.error().message();
    Status status;
    char* ballast = nullptr;
    for (int i = 0; i < 400 && status; ++i) {
      committed = TableWork::steps_of(*heap);
      work.step(*heap);
      ballast = static_cast<char*>(heap->allocate(256_KiB));
      std::memset(ballast, i, 256_KiB);
      status = heap->commit();
    }
    if (status) return "it never was full";
    if (status.error().code != expected) return "another error: " + status.error().message();
    const Seen seen = seen_by_a_reader(uri, work);
    if (!seen.wrong.empty()) return "the reader: " + seen.wrong;
    if (seen.steps != committed) return "the reader sees step " + std::to_string(seen.steps);
    for (int i = 0; i < 3; ++i) work.step(*heap);
    if (heap->commit()) return "it was not full any more";
    make_room();
    if (Status again = heap->commit(); !again) return "with room again: " + again.error().message();
    committed = TableWork::steps_of(*heap);
    const Seen after = seen_by_a_reader(uri, work);
    if (!after.wrong.empty() || after.steps != committed) return "then the reader: " + after.wrong;
  }
  if (Status status = Heap::check(uri); !status) return status.error().message();
  auto heap = Heap::open(uri, kSmall);
  if (!heap) return heap.error().message();
  return TableWork::steps_of(*heap) == committed ? work.compare(*heap) : "another version";
}

TEST_F(HeapFaultsTest, OnAFullDiskItGoesOnInMemoryUntilThereIsRoom) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: a forked child makes threads, which ThreadSanitizer does not allow";
#endif
  const std::string disk = folder.file("disk");
  std::filesystem::create_directory(disk);
  const std::string said = in_a_child([&]() -> std::string {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return "skip: no mount namespace";
    (void)mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("none", disk.c_str(), "tmpfs", 0, "size=24m") != 0) return "skip: no tmpfs";
    const std::string other = disk + "/other";
    std::ofstream(other) << std::string(8_MiB, 'x');
    return go_on_when_full("file:" + disk + "/heap", work, ErrorCode::kNoSpace,
                           [&] { std::filesystem::remove(other); });
  });
  if (said.starts_with("skip: ")) GTEST_SKIP() << said << ": a disk of its own cannot be mounted here";
  EXPECT_EQ(said, "");
}

TEST_F(HeapFaultsTest, AtTheLimitOfAFilesSizeItGoesOnInMemoryUntilThatIsRaised) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: a forked child makes threads, which ThreadSanitizer does not allow";
#endif
  EXPECT_EQ(in_a_child([&]() -> std::string {
              // SIGXFSZ stays as it is: it would end this.
              rlimit limit{16_MiB, RLIM_INFINITY};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit";
              return go_on_when_full(folder.uri(), work, ErrorCode::kIo, [&] {
                limit.rlim_cur = limit.rlim_max;
                (void)setrlimit(RLIMIT_FSIZE, &limit);
              });
            }),
            "");
}

// Allocators of all kinds at once, beside commits, with no room left.
TEST_F(HeapFaultsTest, ThreadsThatFillItAreToldAndItGoesOn) {
  constexpr int kThreads = 4;
  Heap heap = must(Heap::create(folder.uri(), {.memory = 32_MiB, .capacity = 256_MiB}));
  std::atomic<std::uint64_t> refused{0}, thrown{0};
  std::atomic<int> full{0};
  const auto fill = [&](int number) {
    std::mt19937 random(static_cast<unsigned>(number));
    std::vector<void*> mine;
    const std::string name = "thread " + std::to_string(number);
    using Numbers = std::vector<std::uint64_t, allocator<std::uint64_t>>;
    auto* const numbers = heap.construct<Numbers>(name)(heap.allocator<std::uint64_t>());
    for (int round = 0; round < 3; ++round) {
      for (int refusals = 0; refusals < 50;) {
        void* const memory = heap.allocate(random() % 4 == 0 ? 64 : random() % 400'000);
        if (memory == nullptr) {
          ++refusals, ++refused;
        } else {
          *static_cast<void**>(memory) = memory;
          mine.push_back(memory);
        }
      }
      try {
        for (;;) (void)heap.construct<std::array<char, 30'000>>(anonymous_instance)();
      } catch (const std::bad_alloc&) {
        ++thrown;
      }
      try {
        for (;;) numbers->push_back(numbers->size());
      } catch (const std::bad_alloc&) {
        ++thrown;
      }
      void* moved = heap.reallocate(mine.back(), 200_MiB);
      EXPECT_EQ(moved, nullptr);
      if (round == 0) ++full;
      for (void* const one : mine) {
        EXPECT_EQ(*static_cast<void**>(one), one);
        heap.deallocate(one);
      }
      mine.clear();
      for (std::size_t i = 0; i < numbers->size(); ++i) ASSERT_EQ((*numbers)[i], i);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(fill, t);
  while (full < kThreads) ASSERT_TRUE(heap.commit());
  for (auto& thread : threads) thread.join();
  EXPECT_GE(refused, kThreads * 150u);
  EXPECT_GE(thrown, kThreads * 6u);
  ASSERT_TRUE(heap.commit());
  EXPECT_NE(heap.allocate(1_MiB), nullptr);
}

}  // namespace
}  // namespace farheap::testing
