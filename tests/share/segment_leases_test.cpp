// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Leases in a store, against the rules of share/segment_leases.hpp. Nothing here depends on how fast a machine is: what
// has to wait for a term waits for it, and a term that is too short for a slow machine is only lost and taken again.
#include "share/segment_leases.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "segment/superblock.hpp"
#include "share/leased_store.hpp"
#include "store/faulty_store.hpp"
#include "tests/store/shared_store.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::share {
namespace {

using namespace std::chrono_literals;
using segment::VersionLeases;
using test::Bytes;

class SegmentLeasesTest : public ::testing::Test {
 protected:
  ~SegmentLeasesTest() override { set_lease_term(20s); }
  std::unique_ptr<Store> handle() { return std::make_unique<farheap::testing::SharedStore>(*server_); }
  auto take(LeaseUse use) { return SegmentLeases::take(handle(), use, "test:heap"); }
  std::unique_ptr<SegmentLeases> taken(LeaseUse use) {
    auto leases = take(use);
    if (!leases) throw std::runtime_error(leases.error().message());
    return std::move(*leases);
  }
  LeaseRecord record_of(std::uint64_t block) {
    Bytes bytes(4096);
    EXPECT_EQ(test::get_blocks(*server_, block, bytes).outcome, Outcome::kOk);
    return decode(bytes).value();
  }
  void write(std::uint64_t block, const LeaseRecord& record) {
    Bytes bytes(4096);
    encode(record, bytes);
    EXPECT_EQ(test::put_blocks(*server_, block, bytes).outcome, Outcome::kOk);
  }
  static void expect_conflict(const Result<std::unique_ptr<SegmentLeases>>& leases, const std::string& why) {
    ASSERT_FALSE(leases);
    EXPECT_EQ(leases.error().code, ErrorCode::kConflict);
    EXPECT_NE(leases.error().why.find(why), std::string::npos) << leases.error().message();
  }

  std::unique_ptr<Store> server_ = test::open_or_fail("mem:");
};

// A process that was here and is not any more.
os::ProcessName one_that_has_ended() {
  int said[2], go[2];
  EXPECT_EQ(pipe(said), 0);
  EXPECT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto name = os::name_of_this_process();
    char word = 0;
    const bool well = write(said[1], &name, sizeof name) == sizeof name && read(go[0], &word, 1) == 1;
    _exit(well ? 0 : 1);
  }
  os::ProcessName name;
  EXPECT_EQ(read(said[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
  EXPECT_EQ(os::presence_of(name), os::Presence::kHere);
  EXPECT_EQ(write(go[1], "", 1), 1);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  for (const int end : {said[0], said[1], go[0], go[1]}) close(end);
  EXPECT_EQ(os::presence_of(name), os::Presence::kGone);
  return name;
}

LeaseRecord somebody(LeaseUse use, os::ProcessName process, std::uint64_t commit = 0) {
  return {.use = use, .owner = 77, .token = 5, .beat = 1, .commit = commit, .process = process, .name = "somebody"};
}
constexpr os::ProcessName kElsewhere{1, 2, 3, 4, 5};

TEST_F(SegmentLeasesTest, OneWritesAndTheNextIsToldWho) {
  auto first = taken(LeaseUse::kWrites);
  expect_conflict(take(LeaseUse::kWrites), "open for writing by");
  expect_conflict(take(LeaseUse::kAlone), std::to_string(getpid()));
  EXPECT_TRUE(SegmentLeases::has_writer(*server_).value());
  const auto token = record_of(kFirstLease).token;
  first.reset();
  EXPECT_FALSE(SegmentLeases::has_writer(*server_).value());
  auto second = taken(LeaseUse::kWrites);
  EXPECT_GT(record_of(kFirstLease).token, token);
}

TEST_F(SegmentLeasesTest, ReadersAreThereBesideAWriterAndNotBesideWhoIsAlone) {
  auto reader = taken(LeaseUse::kReads);
  auto writer = taken(LeaseUse::kWrites);
  writer.reset();
  expect_conflict(take(LeaseUse::kAlone), "open for reading by");
  reader.reset();
  auto alone = taken(LeaseUse::kAlone);
  expect_conflict(take(LeaseUse::kReads), "being created or removed");
  ASSERT_TRUE(alone->let_readers_in());
  auto late = taken(LeaseUse::kReads);
  expect_conflict(take(LeaseUse::kWrites), "open for writing by");
}

TEST_F(SegmentLeasesTest, TheOldestCommitThatIsReadIsKnown) {
  auto writer = taken(LeaseUse::kWrites);
  EXPECT_EQ(writer->oldest().value(), VersionLeases::kNobody);
  auto one = taken(LeaseUse::kReads);
  EXPECT_EQ(writer->oldest().value(), VersionLeases::kNobody) << "it reads none yet";
  auto two = taken(LeaseUse::kReads);
  ASSERT_TRUE(one->take(9));
  ASSERT_TRUE(two->take(7));
  EXPECT_EQ(writer->oldest().value(), 7u);
  ASSERT_TRUE(two->take(11));
  EXPECT_EQ(writer->oldest().value(), 9u);
  one.reset();
  EXPECT_EQ(writer->oldest().value(), 11u);
  EXPECT_EQ(writer->blocks().value(), 3u);
}

TEST_F(SegmentLeasesTest, WhoHasEndedHereHoldsNothing) {
  write(kFirstLease, somebody(LeaseUse::kWrites, one_that_has_ended()));
  write(kFirstLease + 1, somebody(LeaseUse::kReads, one_that_has_ended(), 3));
  auto writer = taken(LeaseUse::kWrites);
  EXPECT_EQ(record_of(kFirstLease).token, 6u);
  EXPECT_EQ(writer->oldest().value(), VersionLeases::kNobody);
  EXPECT_EQ(record_of(kFirstLease + 1).use, LeaseUse::kNone);
}

TEST_F(SegmentLeasesTest, WhoIsSilentElsewhereForATermHoldsNothing) {
  set_lease_term(100ms);
  write(kFirstLease, somebody(LeaseUse::kWrites, kElsewhere));
  write(kFirstLease + 1, somebody(LeaseUse::kReads, kElsewhere, 3));
  auto alone = taken(LeaseUse::kAlone);
  EXPECT_EQ(record_of(kFirstLease + 1).use, LeaseUse::kNone);
  EXPECT_EQ(alone->oldest().value(), VersionLeases::kNobody);
}

TEST_F(SegmentLeasesTest, WhoBeatsElsewhereIsThere) {
  set_lease_term(2s);
  std::atomic<bool> ends{false};
  std::thread other([&] {
    LeaseRecord writer = somebody(LeaseUse::kWrites, kElsewhere);
    LeaseRecord reader = somebody(LeaseUse::kReads, kElsewhere, 3);
    for (; !ends; ++writer.beat, ++reader.beat) {
      write(kFirstLease, writer);
      write(kFirstLease + 1, reader);
      std::this_thread::sleep_for(1ms);
    }
    writer.use = LeaseUse::kNone;
    write(kFirstLease, writer);
  });
  while (!SegmentLeases::has_writer(*server_).value()) continue;
  expect_conflict(take(LeaseUse::kWrites), "somebody");
  ends = true;
  other.join();
  auto writer = taken(LeaseUse::kWrites);
  EXPECT_EQ(writer->oldest().value(), 3u);
}

// What a reader reads after its lease was taken from it may be another page's already.
TEST_F(SegmentLeasesTest, NothingIsHandedOutThatWasReadAfterALeaseWasLost) {
  set_lease_term(100ms);
  (void)test::put_blocks(*server_, 1, test::make_blocks(1, 1, 4096));
  auto reader = taken(LeaseUse::kReads);
  ASSERT_TRUE(reader->take(3));
  LeasedStore store(handle(), *reader);
  EXPECT_EQ(test::expect_blocks(store, 1, 1), Outcome::kOk);
  LeaseRecord ended = record_of(kFirstLease + 1);
  ended.use = LeaseUse::kNone;
  Outcome outcome = Outcome::kOk;
  Status status;
  while (outcome == Outcome::kOk) {
    write(kFirstLease + 1, ended);  // again and again: it may have been renewed in between
    std::this_thread::sleep_for(60ms);
    Bytes into(4096);
    Get get{.block = 1, .into = into};
    status = store.get({&get, 1});
    outcome = get.outcome;
  }
  EXPECT_EQ(outcome, Outcome::kFailed);
  EXPECT_EQ(status.error().code, ErrorCode::kConflict) << status.error().message();
}

TEST_F(SegmentLeasesTest, NothingIsWrittenOnceTheLeaseIsLost) {
  set_lease_term(100ms);
  auto writer = taken(LeaseUse::kWrites);
  LeasedStore store(handle(), *writer);
  const Bytes page = test::make_blocks(1, 1, 4096);
  Put put{.block = 1, .from = page};
  ASSERT_TRUE(store.put({&put, 1}));
  for (bool lost = false; !lost;) {
    write(kFirstLease, somebody(LeaseUse::kWrites, kElsewhere));
    std::this_thread::sleep_for(60ms);
    put = {.block = 2, .from = page};
    lost = !store.put({&put, 1});
  }
  EXPECT_EQ(put.outcome, Outcome::kFailed);
  EXPECT_EQ(store.put({&put, 1}).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store.erase(1, 1).error().code, ErrorCode::kConflict);
  EXPECT_EQ(test::expect_blocks(*server_, 1, 1), Outcome::kOk);
  writer.reset();
  EXPECT_EQ(record_of(kFirstLease).owner, 77u) << "who has lost it gave up what is another's";
}

// A server that does not answer for longer than a term, and then does.
TEST_F(SegmentLeasesTest, AServerThatWasAwayCostsNoLeaseThatNobodyTook) {
  set_lease_term(60ms);
  auto faulty = std::make_unique<store::FaultyStore>(handle(), store::FaultPlan{});
  store::FaultyStore& network = *faulty;
  auto leases = SegmentLeases::take(std::move(faulty), LeaseUse::kWrites, "test:heap");
  ASSERT_TRUE(leases);
  network.set_plan({.error = 1});
  std::this_thread::sleep_for(150ms);
  EXPECT_FALSE((*leases)->make_sure());
  network.set_plan({});
  const Status back = (*leases)->make_sure();
  EXPECT_TRUE(back) << back.error().message();
}

// Three who want to write, two who want to be alone and three who read, over a network that loses answers and fails,
// against two counters: never two writers, never a reader beside who is alone.
TEST_F(SegmentLeasesTest, ManyAtOnceOverABadNetworkKeepTheRules) {
  std::atomic<int> writers{0}, alone{0}, readers{0};
  std::atomic<int> had{0};
  const auto work = [&](unsigned me, LeaseUse use) {
    std::mt19937 random(me);
    const int rounds = 60;
    for (int i = 0; i < rounds; ++i) {
      store::FaultPlan plan{.seed = random()};
      plan.error = 0.02, plan.unknown = 0.1;
      auto leases = SegmentLeases::take(std::make_unique<store::FaultyStore>(handle(), plan), use, "test:heap");
      if (!leases) {
        std::this_thread::yield();
        continue;
      }
      ++had;
      if (use == LeaseUse::kReads) {
        ++readers;
        EXPECT_EQ(alone, 0);
        std::this_thread::yield();
        EXPECT_EQ(alone, 0);
        --readers;
      } else {
        EXPECT_EQ(++writers, 1);
        if (use == LeaseUse::kAlone) {
          EXPECT_EQ(++alone, 1);
          EXPECT_EQ(readers, 0);
          std::this_thread::yield();
          EXPECT_EQ(readers, 0);
          --alone;
        }
        std::this_thread::yield();
        EXPECT_EQ(writers, 1);
        --writers;
      }
    }
  };
  std::vector<std::thread> all;
  for (unsigned i = 0; i < 8; ++i) {
    all.emplace_back(work, i, i < 3 ? LeaseUse::kWrites : i < 5 ? LeaseUse::kAlone : LeaseUse::kReads);
  }
  for (auto& thread : all) thread.join();
  EXPECT_GT(had, 8);
}

// ---- what is sent late

// Tells what deadline its calls had.
class Watched final : public store::Decorator {
 public:
  Watched(std::unique_ptr<Store> inner, std::int64_t& until_ns)
      : Decorator("watched", std::move(inner)), until_ns_(until_ns) {}
  Status put(std::span<Put> batch) override {
    until_ns_ = store::Deadline::of_this_call().boot_ns();
    return Decorator::put(batch);
  }

 private:
  std::int64_t& until_ns_;
};

// A store tries for patience_s, which is longer than a lease lasts.
TEST_F(SegmentLeasesTest, AWriteEndsBeforeItsLeaseDoes) {
  auto writer = taken(LeaseUse::kWrites);
  const std::int64_t now = os::boot_clock_ns();
  std::int64_t until = 0;
  LeasedStore store(std::make_unique<Watched>(handle(), until), *writer);
  (void)test::put_blocks(store, 2, test::make_blocks(2, 1, 4096));
  EXPECT_GT(until, now);
  EXPECT_LT(until, now + std::chrono::nanoseconds(20s).count());
  EXPECT_TRUE(store::Deadline::of_this_call().is_never());
}

TEST_F(SegmentLeasesTest, NothingIsWrittenBehindWhatTheRecordSays) {
  auto writer = taken(LeaseUse::kWrites);
  EXPECT_EQ(record_of(kFirstLease).reserved, 0u);
  LeasedStore store(handle(), *writer);
  (void)test::put_blocks(store, 5, test::make_blocks(5, 1, 4096));
  const std::uint64_t reserved = record_of(kFirstLease).reserved;
  EXPECT_GT(reserved, 5u);
  (void)test::put_blocks(store, reserved, test::make_blocks(reserved, 1, 4096));
  EXPECT_GT(record_of(kFirstLease).reserved, reserved);
}

// Bytes of the one before may be under way, though it has ended.
TEST_F(SegmentLeasesTest, WhoTakesOverWritesWhereTheOneBeforeDidNot) {
  LeaseRecord before = somebody(LeaseUse::kWrites, one_that_has_ended());
  before.fence = 7, before.reserved = 1000;
  write(kFirstLease, before);
  auto writer = taken(LeaseUse::kWrites);
  EXPECT_EQ(writer->fence(), 1000u);
  EXPECT_TRUE(writer->is_anybody_late());
  writer.reset();
  writer = taken(LeaseUse::kWrites);
  EXPECT_EQ(writer->fence(), 1000u) << "a fence stays";
}

TEST_F(SegmentLeasesTest, WhoIsGivenItWritesWhereTheOneBeforeDid) {
  LeaseRecord before = somebody(LeaseUse::kNone, one_that_has_ended());
  before.fence = 7, before.reserved = 1000;
  write(kFirstLease, before);
  auto writer = taken(LeaseUse::kWrites);
  EXPECT_EQ(writer->fence(), 7u);
  EXPECT_FALSE(writer->is_anybody_late());
}

TEST_F(SegmentLeasesTest, WhatWasNotAnsweredMayStillArrive) {
  auto writer = taken(LeaseUse::kWrites);
  LeasedStore store(std::make_unique<store::FaultyStore>(handle(), store::FaultPlan{.unknown = 1}), *writer);
  EXPECT_EQ(writer->fence(), 0u);
  const Bytes page = test::make_blocks(2, 1, 4096);
  Put put{.block = 2, .from = page};
  EXPECT_FALSE(store.put({&put, 1}));
  const std::uint64_t fence = writer->fence();
  EXPECT_GT(fence, 2u);
  writer.reset();
  auto next = taken(LeaseUse::kWrites);
  EXPECT_EQ(next->fence(), fence);
  EXPECT_TRUE(next->is_anybody_late());
}

// An erasure that came late took the root of whoever wrote after it.
TEST_F(SegmentLeasesTest, ARootIsTakenBackOnlyAsItWasAndNothingIsErasedBehindWhatIsReserved) {
  auto writer = taken(LeaseUse::kWrites);
  LeasedStore store(handle(), *writer);
  (void)test::put_blocks(store, 0, test::make_blocks(0, 1, 4096));
  (void)test::put_blocks(store, 5, test::make_blocks(5, 1, 4096));
  const std::uint64_t reserved = record_of(kFirstLease).reserved;
  (void)test::put_blocks(*server_, reserved, test::make_blocks(reserved, 1, 4096));  // somebody else's
  ASSERT_TRUE(store.erase(0, kFirstLease));
  Bytes into(4096);
  EXPECT_EQ(test::get_blocks(*server_, 0, into).outcome, Outcome::kOk) << "it was erased";
  EXPECT_EQ(segment::read_superblock(*server_).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(test::get_blocks(*server_, 5, into).outcome, Outcome::kAbsent);
  EXPECT_EQ(test::expect_blocks(*server_, reserved, 1), Outcome::kOk);
}

TEST_F(SegmentLeasesTest, WhatIsNoLeaseIsLeftAlone) {
  const Bytes page = test::make_blocks(1, 1, 4096);
  (void)test::put_blocks(*server_, kFirstLease, page);
  auto leases = take(LeaseUse::kWrites);
  ASSERT_FALSE(leases);
  EXPECT_EQ(leases.error().code, ErrorCode::kCorrupt);
  Bytes after(4096);
  (void)test::get_blocks(*server_, kFirstLease, after);
  EXPECT_EQ(after, page);
}

TEST_F(SegmentLeasesTest, AForkedChildLeavesThemToItsParent) {
  auto writer = taken(LeaseUse::kWrites);
  const pid_t child = fork();
  if (child == 0) {
    writer->leave_to_parent();
    writer.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(writer->make_sure());
  EXPECT_TRUE(SegmentLeases::has_writer(*server_).value());
}

}  // namespace
}  // namespace farheap::share
