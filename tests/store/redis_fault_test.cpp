// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One Redis server that breaks its word in every way it can: in no case wrong data.
#include <poll.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/store/redis_fixture.hpp"
#include "tests/store/reply_proxy.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;

void lose_every_answer_in_turn(ReplyProxy::Loss loss, const std::string& name) {
  ReplyProxy proxy(shared_port());
  auto store = open_or_fail(uri_on(proxy.port(), "/0/" + name + "?timeout_ms=100"), kKeep);
  std::int64_t sum = 0;
  for (unsigned skipped = 0;; ++skipped) {
    const unsigned before = proxy.losses();
    proxy.lose(skipped, loss);
    work(*store, skipped * 2, sum);
    if (testing::Test::HasFatalFailure()) FAIL() << "with answer " << skipped << " lost";
    if (proxy.losses() != before) continue;
    EXPECT_GE(skipped, 9u) << "fewer answers were lost than there were calls";
    break;
  }
}

TEST(RedisFaults, EveryAnswerIsLostInTurnWithItsConnection) {
  lose_every_answer_in_turn(ReplyProxy::Loss::kCut, "cut");
}

TEST(RedisFaults, EveryAnswerIsSwallowedInTurn) { lose_every_answer_in_turn(ReplyProxy::Loss::kSwallow, "swallowed"); }

TEST(RedisFaults, ASwapWhoseAnswerWasLostIsKnownToHaveHappenedAlthoughSomebodyOverwroteIt) {
  ReplyProxy proxy(shared_port());
  auto mine = open_or_fail(uri_on(proxy.port(), "/0/overwritten"), kKeep);
  auto other = open_or_fail(uri_on(shared_port(), "/0/overwritten"), kKeep);
  const auto first = put_blocks(*mine, 5, make_blocks(5, 1, 4096));
  proxy.lose(0, ReplyProxy::Loss::kCut, [&] { (void)put_blocks(*other, 5, make_blocks(5, 1, 4096, 9)); });
  EXPECT_EQ(put_blocks(*mine, 5, make_blocks(5, 1, 4096, 1), first.version).outcome, Outcome::kOk);
  EXPECT_EQ(expect_blocks(*mine, 5, 1, 9), Outcome::kOk);
  EXPECT_EQ(proxy.losses(), 1u);
}

// Nothing protects what is in a garbled answer; that it is garbled must not do harm elsewhere.
TEST(RedisFaults, GarbledAnswersAreSurvived) {
  ReplyProxy proxy(shared_port());
  for (unsigned round = 0; round < 300; ++round) {
    proxy.lose(round % 12, ReplyProxy::Loss::kGarble);
    auto opened = open_store(uri_on(proxy.port(), "/0/garbled?timeout_ms=100&patience_s=0"), kKeep);
    if (!opened) continue;
    auto& store = **opened;
    const auto from = make_blocks(60, 10, 4096);
    Bytes into(from.size()), page(4096);
    Put put{.block = 60, .from = from};
    (void)store.put({&put, 1});
    Get gets[] = {{.block = 60, .into = into}, {.block = 61, .into = page}};
    (void)store.get(gets);
    Put swap{.block = 61, .from = page, .expected = gets[1].version};
    (void)store.put({&swap, 1});
    Get known{.block = 61, .into = page, .known = swap.version};
    (void)store.get({&known, 1});
    (void)store.add("n", 1);
    (void)store.erase(65, 2);
    (void)store.usage();
  }
  EXPECT_GE(proxy.losses(), 200u);
}

TEST(RedisFaults, AFrozenServerIsWaitedFor) {
  auto servers = redis_or_throw();
  auto& server = *servers.members.front();
  auto store = open_or_fail(uri_on(server.port(), "?timeout_ms=100"));
  (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
  server.freeze();
  std::thread thaw([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // several attempts long
    server.thaw();
  });
  EXPECT_EQ(put_blocks(*store, 10, make_blocks(10, 5, 4096, 1)).outcome, Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 0, 10), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 10, 5, 1), Outcome::kOk);
  EXPECT_EQ(store->add("n", 1).value(), 1);
  thaw.join();
}

TEST(RedisFaults, WhatAFrozenServerDidNotTakeInTimeNeverOverwritesWhatCameAfter) {
  auto servers = redis_or_throw();
  auto& server = *servers.members.front();
  auto store = open_or_fail(uri_on(server.port(), "?timeout_ms=100&patience_s=0"));
  (void)put_blocks(*store, 7, make_blocks(7, 1, 4096, 1));
  server.freeze();
  const auto late = make_blocks(7, 1, 4096, 2);
  Put put{.block = 7, .from = late};
  const Status status = store->put({&put, 1});
  EXPECT_EQ(put.outcome, Outcome::kUnknown);
  EXPECT_THAT(message_of(status), HasSubstr("no answer in 100 ms"));
  server.thaw();
  // Of another lane, while the first one's request may still lie at the server.
  std::thread([&] { EXPECT_EQ(put_blocks(*store, 7, make_blocks(7, 1, 4096, 3)).outcome, Outcome::kOk); }).join();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(expect_blocks(*store, 7, 1, 3), Outcome::kOk);
}

TEST(RedisFaults, ARequestThatWasHeldUpOnItsWayNeverOverwritesWhatCameAfter) {
  ReplyProxy proxy(shared_port());
  auto store = open_or_fail(uri_on(proxy.port(), "/0/held?timeout_ms=100"), kKeep);
  (void)put_blocks(*store, 7, make_blocks(7, 1, 4096, 1));
  proxy.hold();
  EXPECT_EQ(put_blocks(*store, 7, make_blocks(7, 1, 4096, 2)).outcome, Outcome::kOk);  // on another connection
  EXPECT_EQ(put_blocks(*store, 7, make_blocks(7, 1, 4096, 3)).outcome, Outcome::kOk);
  proxy.release();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(expect_blocks(*store, 7, 1, 3), Outcome::kOk);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Each of them says no to writes for the time being.
TEST(RedisFaults, ARefusalThatPassesIsWaitedForAndToldWhenPatienceEnds) {
  using Words = std::vector<std::string>;
  struct Refusal {
    std::string word;
    Words begin, end;
  };
  auto servers = redis_or_throw({"--busy-reply-threshold", "20"});
  const auto port = servers.members.front()->port();
  const Refusal refusals[] = {
      {"READONLY", {"REPLICAOF", "127.0.0.1", "1"}, {"REPLICAOF", "NO", "ONE"}},
      {"NOREPLICAS", {"CONFIG", "SET", "min-replicas-to-write", "1"}, {"CONFIG", "SET", "min-replicas-to-write", "0"}},
      {"BUSY", {"EVAL", "while true do end", "0"}, {"SCRIPT", "KILL"}},
  };
  auto store = open_or_fail(servers.uri, kKeep);
  auto hasty = open_or_fail(servers.uri + "?patience_s=0", kKeep);
  std::uint64_t tint = 0;
  for (const auto& refusal : refusals) {
    std::thread begin([&] { (void)tell(port, refusal.begin); });
    const auto page = make_blocks(5, 1, 4096, 99);
    Put put{.block = 5, .from = page};
    Status status;
    for (int i = 0; i < 1000 && status; ++i) {  // the script is busy only after a while
      status = hasty->put({&put, 1});
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const auto message = message_of(status);
    EXPECT_TRUE(message.find(refusal.word) != std::string::npos || message.find("it is a replica") != std::string::npos)
        << refusal.word << ": " << message;
    std::thread end([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      (void)tell(port, refusal.end);
    });
    EXPECT_EQ(put_blocks(*store, 5, make_blocks(5, 1, 4096, ++tint)).outcome, Outcome::kOk) << refusal.word;
    EXPECT_EQ(expect_blocks(*store, 5, 1, tint), Outcome::kOk);
    begin.join();
    end.join();
  }
}

TEST(RedisFaults, AServerThatIsGoneEndsPatience) {
  auto servers = redis_or_throw();
  auto store = open_or_fail(uri_on(servers.members.front()->port(), "?patience_s=1"));
  servers.members.front()->kill();
  Bytes page(4096);
  Get get{.block = 1, .into = page};
  const Status status = store->get({&get, 1});
  EXPECT_EQ(get.outcome, Outcome::kFailed);
  EXPECT_THAT(message_of(status), HasSubstr("Connection refused"));
  EXPECT_THAT(message_of(status), HasSubstr("s now"));
}

TEST(RedisFaults, AServerThatWasRestartedEmptyIsNeverTakenForTheOld) {
  auto servers = redis_or_throw();
  auto& server = *servers.members.front();
  auto store = open_or_fail(servers.uri, kKeep);
  (void)put_blocks(*store, 0, make_blocks(0, 10, 4096));
  server.kill();
  ASSERT_TRUE(server.start_again());
  Bytes page(4096);
  Get get{.block = 0, .into = page};
  Status status = store->get({&get, 1});
  EXPECT_EQ(get.outcome, Outcome::kFailed);
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(message_of(status), HasSubstr("does not have it any more"));
  Put put{.block = 0, .from = page};
  EXPECT_FALSE(store->put({&put, 1}));
  EXPECT_EQ(put.outcome, Outcome::kFailed);
  EXPECT_FALSE(store->add("n", 1));
  EXPECT_FALSE(store->erase(0, 1));
  // Made anew by somebody else under the same name, it is still not what was opened.
  auto other = open_or_fail(servers.uri, kKeep);
  EXPECT_FALSE(store->usage());
}

TEST(RedisFaults, AnOlderDumpIsNoticed) {
  auto servers = redis_or_throw();
  auto& server = *servers.members.front();
  auto store = open_or_fail(servers.uri, kKeep);
  (void)put_blocks(*store, 0, make_blocks(0, 10, 4096));
  EXPECT_EQ(tell(server.port(), {"SAVE"}).text, "OK");
  (void)put_blocks(*store, 3, make_blocks(3, 1, 4096, 1));
  server.kill();
  ASSERT_TRUE(server.start_again());
  Bytes page(4096);
  Get get{.block = 3, .into = page};
  const Status status = store->get({&get, 1});
  EXPECT_EQ(get.outcome, Outcome::kFailed);
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(message_of(status), HasSubstr("older contents"));
}

TEST(RedisFaults, AServerWithALogGoesOnAfterAKill) {
  auto servers = redis_or_throw({"--appendonly", "yes", "--appendfsync", "always"});
  auto& server = *servers.members.front();
  auto store = open_or_fail(servers.uri, kKeep);
  EXPECT_TRUE(has(store->capabilities(), Capability::kDurable));
  std::atomic<bool> has_ended{false};
  std::thread work([&] {
    for (std::uint64_t round = 1; round <= 500; ++round) {
      const std::uint64_t block = round % 40;
      ASSERT_EQ(put_blocks(*store, block, make_blocks(block, 3, 4096, round)).outcome, Outcome::kOk);
      ASSERT_EQ(expect_blocks(*store, block, 3, round), Outcome::kOk);
      ASSERT_EQ(store->add("rounds", 1).value(), static_cast<std::int64_t>(round));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    has_ended = true;
  });
  unsigned kills = 0;
  for (; !has_ended && kills < 5; ++kills) {  // the server lives as long as the thread that starts it
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server.kill();
    EXPECT_TRUE(server.start_again());
  }
  work.join();
  EXPECT_GE(kills, 1u);
}

TEST(RedisFaults, WithoutALogNothingIsDurable) {
  auto store = open_or_fail(uri_on(shared_port(), "/0/volatile"), kKeep);
  EXPECT_FALSE(has(store->capabilities(), Capability::kDurable));
  EXPECT_TRUE(store->sync());
  auto strict = open_or_fail(uri_on(shared_port(), "/0/volatile?replicas=1&timeout_ms=100"), kKeep);
  EXPECT_THAT(message_of(strict->sync()), HasSubstr("0 of 1 replicas"));
}

TEST(RedisFaults, AFullServerSaysSoAndGoesOnWhenThereIsRoom) {
  auto servers = redis_or_throw({"--maxmemory", "20mb"});
  auto store = open_or_fail(servers.uri, kKeep);
  std::uint64_t block = 0;
  Status status;
  Put put;
  for (; status && block < 10000; block += 64) {
    const auto bytes = make_blocks(block, 64, 4096);
    put = {.block = block, .from = bytes};
    status = store->put({&put, 1});
  }
  EXPECT_EQ(put.outcome, Outcome::kNoSpace);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNoSpace);
  EXPECT_THAT(message_of(status), HasSubstr("raise maxmemory"));
  EXPECT_EQ(expect_blocks(*store, 0, 64), Outcome::kOk);
  ASSERT_TRUE(store->erase(64, 1024));
  // The server gives memory back behind our back (UNLINK).
  const auto bytes = make_blocks(5000, 64, 4096);
  put = {.block = 5000, .from = bytes};
  for (int i = 0; i < 1000 && !store->put({&put, 1}); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(put.outcome, Outcome::kOk);
  EXPECT_EQ(store->add("n", 1).value(), 1);
}

TEST(RedisFaults, GetsInFlightOutliveEveryLostAnswer) {
  ReplyProxy proxy(shared_port());
  auto store = open_or_fail(uri_on(proxy.port(), "/0/flying?timeout_ms=100"), kKeep);
  (void)put_blocks(*store, 0, make_blocks(0, 256, 4096));
  auto flying = store->gets_in_flight(8);
  ASSERT_NE(flying, nullptr);
  for (unsigned round = 0; round < 20; ++round) {
    proxy.lose(round % 5, round % 2 == 0 ? ReplyProxy::Loss::kCut : ReplyProxy::Loss::kSwallow);
    std::vector<Bytes> pages(8, Bytes(3 * 4096));
    std::vector<Get> gets;
    for (std::uint64_t i = 0; i < 8; ++i) gets.push_back({.block = (i * 31 + round) % 250, .into = pages[i]});
    std::size_t begun = 0, taken = 0;
    for (auto& get : gets) {
      if (flying->begin(get)) {
        ++begun;
      } else {
        ASSERT_TRUE(store->get({&get, 1}));
      }
    }
    while (taken < begun) {
      pollfd one{.fd = flying->descriptor(), .events = POLLIN};
      ASSERT_EQ(poll(&one, 1, 30'000), 1) << "nothing comes any more";
      while (flying->take() != nullptr) ++taken;
    }
    for (std::uint64_t i = 0; i < 8; ++i) {
      ASSERT_EQ(gets[i].outcome, Outcome::kOk);
      EXPECT_TRUE(pages[i] == make_blocks(gets[i].block, 3, 4096));
    }
  }
}

}  // namespace
}  // namespace farheap::test
