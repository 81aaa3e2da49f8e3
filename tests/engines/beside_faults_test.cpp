// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap-engines is killed, or stopped, while it is asked: no wrong data, and words where something is lost.
#include <poll.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <map>
#include <random>

#include "tests/engines/beside_fixture.hpp"

namespace farheap::test {
namespace {

class BesideFaults : public testing::Test {
 protected:
  ~BesideFaults() override { wait_until_all_ended(FARHEAP_ENGINES_GUEST); }
  static void kill_engines() {
    for (const pid_t process : processes_of(FARHEAP_ENGINES_GUEST)) kill(process, SIGKILL);
  }
  ServedBy served_{FARHEAP_ENGINES_GUEST};
  TemporaryFolder folder_;
};

const StoreOptions kKept{.lifetime = Lifetime::kKeep};

TEST_F(BesideFaults, AKeptStoreIsOpenedAgain) {
  auto store = open_beside("file", folder_.path(), kKept).value();
  (void)put_blocks(*store, 0, make_blocks(0, 20, 4096));
  for (int i = 0; i < 3; ++i) {
    kill_engines();
    EXPECT_EQ(expect_blocks(*store, 0, 20), Outcome::kOk);
    EXPECT_EQ(put_blocks(*store, 100, make_blocks(100, 5, 4096)).outcome, Outcome::kOk);
  }
  store.reset();
  EXPECT_EQ(expect_blocks(*open_beside("file", folder_.path(), kKept).value(), 100, 5), Outcome::kOk);
}

TEST_F(BesideFaults, WhatAScratchStoreHeldIsSaidToBeLost) {
  auto store = open_beside("mem", "").value();
  (void)put_blocks(*store, 0, make_blocks(0, 4, 4096));
  auto flying = store->gets_in_flight(4);
  kill_engines();
  Bytes into(4096);
  for (int i = 0; i < 3; ++i) {
    Get get{.block = 0, .into = into};
    const auto status = store->get({&get, 1});
    ASSERT_FALSE(status);
    EXPECT_EQ(get.outcome, Outcome::kFailed);
    EXPECT_NE(status.error().message().find("lost"), std::string::npos) << status.error().message();
  }
  const Bytes from(4096);
  Put put{.block = 0, .from = from};
  EXPECT_FALSE(store->put({&put, 1}));
  EXPECT_EQ(put.outcome, Outcome::kFailed);
  EXPECT_FALSE(store->erase(0, 1));
  EXPECT_FALSE(store->add("x", 1));
  EXPECT_FALSE(store->usage());
  Get get{.block = 0, .into = into};
  EXPECT_FALSE(flying->begin(get));
}

TEST_F(BesideFaults, WhatIsInFlightIsAskedAgain) {
  auto store = open_beside("file", folder_.path(), kKept).value();
  (void)put_blocks(*store, 0, make_blocks(0, 8, 4096));
  auto flying = store->gets_in_flight(8);
  std::vector<Bytes> into(8, Bytes(4096));
  std::vector<Get> gets(8);
  for (int round = 0; round < 5; ++round) {
    std::size_t begun = 0;
    for (; begun < gets.size(); ++begun) {
      gets[begun] = {.block = begun, .into = into[begun]};
      if (!flying->begin(gets[begun])) break;
    }
    EXPECT_GT(begun, 0u);
    kill_engines();
    for (std::size_t taken = 0; taken < begun;) {
      pollfd ready{flying->descriptor(), POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, -1), 1);
      while (const Get* done = flying->take()) {
        EXPECT_EQ(done->outcome, Outcome::kOk);
        EXPECT_TRUE(into[done->block] == make_blocks(done->block, 1, 4096));
        ++taken;
      }
    }
  }
}

TEST_F(BesideFaults, AForkedChildSaysThatItCannotGoOn) {
  auto store = open_beside("file", folder_.path(), kKept).value();
  (void)put_blocks(*store, 0, make_blocks(0, 4, 4096));
  const pid_t child = fork();
  if (child == 0) {
    bool ok = expect_blocks(*store, 0, 4) == Outcome::kOk;
    kill_engines();
    Bytes into(4096);
    Get get{.block = 0, .into = into};
    const auto status = store->get({&get, 1});
    ok = ok && !status && get.outcome == Outcome::kFailed;
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(expect_blocks(*store, 0, 4), Outcome::kOk);  // the parent starts another
}

TEST_F(BesideFaults, AProcessThatStandsStillIsWaitedFor) {
  auto store = open_beside("mem", "").value();
  (void)put_blocks(*store, 0, make_blocks(0, 4, 4096));
  const auto all = processes_of(FARHEAP_ENGINES_GUEST);
  ASSERT_EQ(all.size(), 1u);
  kill(all.front(), SIGSTOP);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    kill(all.front(), SIGCONT);
  });
  EXPECT_EQ(expect_blocks(*store, 0, 4), Outcome::kOk);
  later.join();
}

#ifdef FARHEAP_HAVE_LMDB
// One thread's blocks and a counter, with what must be in them.
class Model {
 public:
  Model(Store& store, std::uint64_t me) : store_(store), me_(me), random_(me + 1) {}

  void step() {
    const std::uint64_t block = me_ * 1000 + random_() % 10;
    switch (random_() % 5) {
      case 0: return put(block);
      case 1: return swap(block);
      case 2: return erase(block);
      case 3: return count();
      default: return look(block);
    }
  }
  void look_at_all() {
    for (std::uint64_t i = 0; i < 10; ++i) look(me_ * 1000 + i);
  }

 private:
  struct Held {
    std::uint64_t tint;
    Version version;
  };

  void put(std::uint64_t block) {
    const auto entry = put_blocks(store_, block, make_blocks(block, 1, 4096, ++tint_));
    ASSERT_EQ(entry.outcome, Outcome::kOk);
    held_[block] = {tint_, entry.version};
  }

  void swap(std::uint64_t block) {
    const bool was_there = held_.contains(block);
    const Bytes bytes = make_blocks(block, 1, 4096, ++tint_);
    Put entry{.block = block, .from = bytes, .expected = was_there ? held_[block].version : 0};
    const auto status = store_.put({&entry, 1});
    if (entry.outcome == Outcome::kOk) {
      held_[block] = {tint_, entry.version};
      return;
    }
    ASSERT_EQ(entry.outcome, Outcome::kUnknown) << (status ? "" : status.error().message());
    ++unknown;
    // It happened, or it did not.
    Bytes into(4096);
    const auto found = get_blocks(store_, block, into);
    if (found.outcome == Outcome::kOk && into == bytes) {
      held_[block] = {tint_, found.version};
    } else if (was_there) {
      ASSERT_EQ(found.outcome, Outcome::kOk);
      ASSERT_TRUE(into == make_blocks(block, 1, 4096, held_[block].tint));
    } else {
      ASSERT_EQ(found.outcome, Outcome::kAbsent);
    }
  }

  void erase(std::uint64_t block) {
    ASSERT_TRUE(store_.erase(block, 1));
    held_.erase(block);
  }

  void count() {
    const std::string name = "counter" + std::to_string(me_);
    const auto sum = store_.add(name, 1);
    if (!sum) {
      ASSERT_EQ(sum.error().code, ErrorCode::kUnknown) << sum.error().message();
      ++unknown;
      const auto found = store_.add(name, 0);
      ASSERT_TRUE(found);
      ASSERT_TRUE(*found == counted_ || *found == counted_ + 1);
      counted_ = *found;
      return;
    }
    ASSERT_EQ(*sum, ++counted_);
  }

  void look(std::uint64_t block) {
    const auto outcome = expect_blocks(store_, block, 1, held_.contains(block) ? held_[block].tint : 0);
    ASSERT_EQ(outcome, held_.contains(block) ? Outcome::kOk : Outcome::kAbsent) << block;
  }

  Store& store_;
  std::uint64_t me_;
  std::mt19937_64 random_;
  std::map<std::uint64_t, Held> held_;
  std::uint64_t tint_ = 0;
  std::int64_t counted_ = 0;

 public:
  int unknown = 0;
};

TEST_F(BesideFaults, KilledAtAnyTimeItNeverGivesWrongData) {
  constexpr int kKills = 20;
  auto store = open_beside("lmdb", folder_.path(), kKept, {{"lmdb", "sync", "asked"}}).value();
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  std::atomic<int> unknown{0}, steps{0};
  for (std::uint64_t me = 0; me < 3; ++me) {
    threads.emplace_back([&, me] {
      Model model(*store, me);
      for (; !done && !testing::Test::HasFatalFailure(); ++steps) model.step();
      model.look_at_all();
      unknown += model.unknown;
    });
  }
  // Not before something was answered since the last one: a process that is killed while it starts, again and again, is
  // given up.
  std::mt19937_64 random(9);
  for (int i = 0; i < kKills; ++i) {
    const int before = steps;
    while (steps < before + 4 && !testing::Test::HasFatalFailure()) sched_yield();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5'000));
    kill_engines();
  }
  done = true;
  for (auto& thread : threads) thread.join();
  std::cout << unknown << " outcomes were unknown after " << kKills << " kills\n";
}
#endif

}  // namespace
}  // namespace farheap::test
