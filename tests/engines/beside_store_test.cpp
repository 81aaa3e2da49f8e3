// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A store in farheap-engines keeps the contract that it keeps at home.
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "store/contract.hpp"
#include "tests/engines/beside_fixture.hpp"

namespace farheap::test {
namespace {

void expect_contract(const std::string& scheme, const StoreOptions& options) {
  const ServedBy served(FARHEAP_ENGINES_GUEST);
  for (const auto& check : store::contract_checks()) {
    const TemporaryFolder folder;
    const std::string place = scheme == "mem" ? "" : folder.path();
    const auto open = [&](const StoreOptions& how) { return open_beside(scheme, place, how); };
    const auto answer = store::run_contract_check(
        check, {.open = open, .options = options, .describes = scheme + ":" + place, .child_may_go_on = true});
    for (const auto& words : answer.words) {
      if (answer.verdict == store::Verdict::kBroken) ADD_FAILURE() << check.name << ": " << words;
    }
  }
  wait_until_all_ended(FARHEAP_ENGINES_GUEST);
}

TEST(BesideContract, HoldsForMemory) { expect_contract("mem", {}); }
TEST(BesideContract, HoldsForLargeBlocks) { expect_contract("mem", {.block_bytes = std::size_t{256} << 10}); }
TEST(BesideContract, HoldsForAFile) { expect_contract("file", {}); }
TEST(BesideContract, HoldsForAKeptFile) { expect_contract("file", {.lifetime = Lifetime::kKeep}); }
#ifdef FARHEAP_HAVE_LMDB
TEST(BesideContract, HoldsForADatabase) { expect_contract("lmdb", {}); }
#endif

class BesideStoreTest : public testing::Test {
 protected:
  ServedBy served_{FARHEAP_ENGINES_GUEST};
};

// More than a slot's data area has room for.
TEST_F(BesideStoreTest, WhatAStoreHoldsComesInAsManyAnswersAsItTakes) {
  constexpr std::int64_t kCounters = 700;
  auto store = open_beside("mem", "").value();
  for (std::int64_t i = 0; i < kCounters; ++i) {
    const std::string name = std::to_string(i) + std::string(4000, 'x');
    ASSERT_TRUE(store->add(name, i + 1));
  }
  const auto counters = store->counters();
  ASSERT_TRUE(counters) << counters.error().message();
  std::vector<bool> seen(kCounters);
  for (const auto& counter : *counters) {
    EXPECT_EQ(std::stoll(counter.name) + 1, counter.value);
    seen[static_cast<std::size_t>(counter.value - 1)] = true;
  }
  EXPECT_EQ(counters->size(), seen.size());
  EXPECT_EQ(std::ranges::count(seen, true), kCounters);
  (void)put_blocks(*store, 5, make_blocks(5, 3, 4096));
  const auto runs = store->runs_from(6);
  ASSERT_TRUE(runs && runs->size() == 1);
  EXPECT_EQ(runs->front().first, 6u);
  EXPECT_EQ(runs->front().count, 2u);
}

TEST_F(BesideStoreTest, GetsInFlightComeBackInAnyOrder) {
  constexpr unsigned kMost = 8;
  auto store = open_beside("mem", "").value();
  (void)put_blocks(*store, 0, make_blocks(0, 64, 4096));
  auto flying = store->gets_in_flight(kMost);
  ASSERT_TRUE(flying);
  std::mt19937_64 random(4);
  std::vector<Bytes> into(kMost, Bytes(4096));
  std::vector<Get> gets(kMost);
  std::vector<std::size_t> free_ones(kMost);
  for (std::size_t i = 0; i < kMost; ++i) free_ones[i] = i;
  for (int begun = 0, taken = 0; taken < 500;) {
    while (begun < 500 && !free_ones.empty()) {
      const auto at = free_ones.back();
      gets[at] = {.block = random() % 70, .into = into[at]};
      if (!flying->begin(gets[at])) break;
      free_ones.pop_back();
      ++begun;
    }
    Get* const done = flying->take();
    if (done == nullptr) {
      pollfd ready{flying->descriptor(), POLLIN, 0};
      ASSERT_EQ(poll(&ready, 1, -1), 1);
      continue;
    }
    ++taken;
    const auto at = static_cast<std::size_t>(done - gets.data());
    ASSERT_EQ(done->outcome, done->block < 64 ? Outcome::kOk : Outcome::kAbsent);
    if (done->outcome == Outcome::kOk) {
      EXPECT_EQ(into[at], make_blocks(done->block, 1, 4096));
    }
    free_ones.push_back(at);
  }
  EXPECT_EQ(flying->take(), nullptr);
}

TEST_F(BesideStoreTest, ThoseWhoWaitFindASlotBesideAllThatIsInFlight) {
  auto store = open_beside("mem", "").value();
  (void)put_blocks(*store, 0, make_blocks(0, 1, 4096));
  auto flying = store->gets_in_flight(100);
  std::vector<Bytes> into(100, Bytes(4096));
  std::vector<Get> gets(100);
  std::size_t begun = 0;
  for (; begun < gets.size(); ++begun) {
    gets[begun] = {.block = 0, .into = into[begun]};
    if (!flying->begin(gets[begun])) break;
  }
  EXPECT_GE(begun, 8u);
  EXPECT_LT(begun, 32u);
  EXPECT_EQ(expect_blocks(*store, 0, 1), Outcome::kOk);
  flying.reset();  // with all of them in flight
  EXPECT_EQ(expect_blocks(*store, 0, 1), Outcome::kOk);
}

TEST_F(BesideStoreTest, AForkedChildAndItsChildGoOnBesideTheParent) {
  auto store = open_beside("mem", "").value();
  ASSERT_TRUE(has(store->capabilities(), Capability::kForks));
  (void)put_blocks(*store, 0, make_blocks(0, 8, 4096));
  auto flying = store->gets_in_flight(4);
  Bytes into(4096);
  Get get{.block = 3, .into = into};
  ASSERT_TRUE(flying->begin(get));
  const auto write_and_read = [&](std::uint64_t block) {
    return put_blocks(*store, block, make_blocks(block, 2, 4096)).outcome == Outcome::kOk &&
           expect_blocks(*store, block, 2) == Outcome::kOk && expect_blocks(*store, 0, 8) == Outcome::kOk;
  };
  const pid_t child = fork();
  if (child == 0) {
    flying.reset();  // the parent's
    bool ok = write_and_read(100);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(write_and_read(200) ? 0 : 1);
    int status = 0;
    ok = ok && waitpid(grandchild, &status, 0) == grandchild && status == 0 && write_and_read(300);
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const std::uint64_t block : {100, 200, 300}) EXPECT_EQ(expect_blocks(*store, block, 2), Outcome::kOk);
  Get* done = nullptr;
  while ((done = flying->take()) == nullptr) sched_yield();
  EXPECT_EQ(done->outcome, Outcome::kOk);
}

TEST_F(BesideStoreTest, AChildGoesOnWhenItsParentHasClosedTheStore) {
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  auto store = open_beside("mem", "").value();
  (void)put_blocks(*store, 0, make_blocks(0, 8, 4096));
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    const bool told = read(go[0], &byte, 1) == 1;
    _exit(told && expect_blocks(*store, 0, 8) == Outcome::kOk ? 0 : 1);
  }
  store.reset();  // comes back although the child has it open
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int one : {ready[0], ready[1], go[0], go[1]}) close(one);
  wait_until_all_ended(FARHEAP_ENGINES_GUEST);
}

TEST_F(BesideStoreTest, ErrorsOfTheEngineComeThroughInItsWords) {
  const auto opened = open_beside("file", "/nowhere/at/all");
  ASSERT_FALSE(opened);
  const auto home = open_store("file:/nowhere/at/all");
  ASSERT_FALSE(home);
  EXPECT_EQ(opened.error().message(), home.error().message());
  EXPECT_EQ(opened.error().code, home.error().code);
  const auto unknown = open_beside("etcd", "//x");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(unknown.error().message().find("etcd"), std::string::npos);
  wait_until_all_ended(FARHEAP_ENGINES_GUEST);
}

}  // namespace
}  // namespace farheap::test
