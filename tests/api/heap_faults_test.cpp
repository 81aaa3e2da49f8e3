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

#include <atomic>
#include <cstring>
#include <new>
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

}  // namespace
}  // namespace farheap::testing
