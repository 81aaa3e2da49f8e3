// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One Redis server that breaks its word in every way it can: in no case wrong data.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/store/redis_fixture.hpp"
#include "tests/store/reply_proxy.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// A server of its own for tests that break it; the others share one.
TestServers& shared_server() {
  static TestServers servers = redis_or_throw();
  return servers;
}
std::uint16_t shared_port() { return shared_server().members.front()->port(); }

std::string message_of(const Status& status) { return status ? "" : status.error().message(); }

// Puts, a compare-and-swap, adds, gets and an erasure: each says what it is to say although an answer was lost.
void work(Store& store, std::uint64_t tint, std::int64_t& sum) {
  ASSERT_EQ(put_blocks(store, 60, make_blocks(60, 20, 4096, tint)).outcome, Outcome::kOk);
  Bytes page(4096);
  const auto got = get_blocks(store, 61, page);
  ASSERT_EQ(got.outcome, Outcome::kOk);
  const auto swapped = put_blocks(store, 61, make_blocks(61, 1, 4096, tint + 1), got.version);
  ASSERT_EQ(swapped.outcome, Outcome::kOk);
  ASSERT_EQ(put_blocks(store, 61, page, got.version).outcome, Outcome::kConflict);
  const auto added = store.add("sum", 3);
  ASSERT_TRUE(added) << added.error().message();
  ASSERT_EQ(*added, sum += 3);
  ASSERT_EQ(get_blocks(store, 61, page, swapped.version).outcome, Outcome::kSame);
  ASSERT_EQ(expect_blocks(store, 62, 18, tint), Outcome::kOk);
  ASSERT_TRUE(store.erase(70, 5));
  ASSERT_EQ(expect_blocks(store, 70, 1), Outcome::kAbsent);
}

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

TEST(RedisFaults, AServerThatThrowsDataAwayIsRefused) {
  auto servers = redis_or_throw({"--maxmemory-policy", "allkeys-lru"});
  const auto opened = open_store(servers.uri, kKeep);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), HasSubstr("maxmemory-policy noeviction"));
}

TEST(RedisFaults, PasswordsAreWantedAndNeverSaid) {
  auto servers = redis_or_throw({"--requirepass", "open sesame"});
  const auto none = open_store(servers.uri, kKeep);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kPermission);
  EXPECT_THAT(none.error().message(), HasSubstr("password_file"));
  TemporaryFolder folder;
  const auto file_with = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path() + "/" + name) << text << "\n";
    std::filesystem::permissions(folder.path() + "/" + name, std::filesystem::perms(0600));
    return folder.path() + "/" + name;
  };
  const auto wrong = open_store(servers.uri + "?password_file=" + file_with("wrong", "open barley"), kKeep);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kPermission);
  EXPECT_THAT(wrong.error().message(), Not(HasSubstr("barley")));
  auto store = open_or_fail(servers.uri + "?password_file=" + file_with("right", "open sesame"), kKeep);
  EXPECT_THAT(store->describe(), Not(HasSubstr("sesame")));
  (void)put_blocks(*store, 1, make_blocks(1, 1, 4096));
  EXPECT_EQ(expect_blocks(*store, 1, 1), Outcome::kOk);
}

// docs/stores.md says which.
TEST(RedisFaults, AUserWithTheRightsThatAreListedIsEnough) {
  auto servers = redis_or_throw();
  const auto port = servers.members.front()->port();
  const std::vector<std::string> rights{"ACL",          "SETUSER",     "ann",     "on",          ">sesame",
                                        "~farheap:*",   "+@read",      "+@write", "+@scripting", "+@connection",
                                        "+info",        "+time",       "+wait",   "+config|get", "+cluster|slots",
                                        "+client|kill", "+client|list"};
  EXPECT_EQ(tell(port, rights).text, "OK");
  const auto uri = "redis://ann:sesame@127.0.0.1:" + std::to_string(port) + "/0/";
  {
    ReplyProxy proxy(port);
    auto store =
        open_or_fail("redis://ann:sesame@127.0.0.1:" + std::to_string(proxy.port()) + "/0/kept?timeout_ms=100", kKeep);
    EXPECT_EQ(store->describe().find("sesame"), std::string::npos);
    std::int64_t sum = 0;
    for (unsigned skipped = 0; skipped < 8; ++skipped) {
      proxy.lose(skipped, ReplyProxy::Loss::kSwallow);
      work(*store, skipped * 2, sum);
    }
    EXPECT_EQ(store->usage()->blocks, 15u);
    EXPECT_TRUE(store->erase(0, ~std::uint64_t{0}));
    auto scratch = open_or_fail(uri + "scratch");
    (void)put_blocks(*scratch, 0, make_blocks(0, 10, 4096));
  }
  ASSERT_TRUE(list_stores(uri + "kept"));
  EXPECT_EQ(list_stores(uri + "kept")->size(), 1u);
  EXPECT_TRUE(remove_store(uri + "kept"));
  EXPECT_EQ(tell(port, {"DBSIZE"}).number, 0);
  // Without being able to have old requests forgotten, no write could be relied on.
  EXPECT_EQ(tell(port, {"ACL", "SETUSER", "ann", "-client|kill"}).text, "OK");
  const auto refused = open_store(uri + "kept", kKeep);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
  EXPECT_THAT(refused.error().message(), HasSubstr("grant it"));
}

TEST(RedisFaults, ADatabaseThatTheServerHasNotIsRefused) {
  const auto opened = open_store(uri_on(shared_port(), "/99/x"), kKeep);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(opened.error().message(), HasSubstr("it has no database 99"));
}

TEST(RedisFaults, ForeignKeysAreRefusedAndNotOverwritten) {
  const auto port = shared_port();
  (void)tell(port, {"SET", "farheap:{foreign:meta}", "mine"});
  const auto opened = open_store(uri_on(port, "/0/foreign"), kKeep);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kConflict);
  EXPECT_EQ(tell(port, {"GET", "farheap:{foreign:meta}"}).text, "mine");

  (void)tell(port, {"SET", "farheap:{strange:5}", "mine"});
  const auto second = open_store(uri_on(port, "/0/strange"), kKeep);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("farheap:{strange:5}"));

  auto store = open_or_fail(uri_on(port, "/0/visited"), kKeep);
  const auto keys = keys_of(port, "visited");
  (void)tell(port, {"SET", keys.group(1), "mine"});
  const auto page = make_blocks(64, 1, 4096);
  Put put{.block = 64, .from = page};
  const Status status = store->put({&put, 1});
  EXPECT_EQ(put.outcome, Outcome::kFailed);
  EXPECT_THAT(message_of(status), HasSubstr("not made by Farheap"));
  Bytes into(4096);
  Get get{.block = 64, .into = into};
  EXPECT_FALSE(store->get({&get, 1}));
  EXPECT_EQ(get.outcome, Outcome::kFailed);
  (void)tell(port, {"HSET", keys.group(2), "0", "short", "s0", "12345678"});
  Get odd{.block = 128, .into = into};
  EXPECT_FALSE(store->get({&odd, 1}));
  EXPECT_EQ(odd.outcome, Outcome::kCorrupt);
  EXPECT_EQ(tell(port, {"GET", keys.group(1)}).text, "mine");
}

// A writer that does not know it yet writes once more into the emptied database: nobody could remove that.
TEST(RedisFaults, WhatAWriterLeavesInAServerThatWasEmptiedCanBeRemoved) {
  auto servers = redis_or_throw();
  const auto port = servers.members.front()->port();
  const auto uri = uri_on(port, "/0/h");
  auto store = open_or_fail(uri, kKeep);
  (void)put_blocks(*store, 0, make_blocks(0, 1, 4096));
  (void)tell(port, {"FLUSHDB"});
  const auto page = make_blocks(1, 1, 4096);
  Put put{.block = 1, .from = page};
  EXPECT_THAT(message_of(store->put({&put, 1})), HasSubstr("the server emptied"));
  ASSERT_NE(tell(port, {"DBSIZE"}).number, 0);
  const auto refused = open_store(uri, kKeep);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("farheap store rm"));
  (void)tell(port, {"SET", "farheap:{h:mine}", "mine"});
  EXPECT_TRUE(remove_store(uri));
  EXPECT_EQ(tell(port, {"DBSIZE"}).number, 1);
  EXPECT_EQ(remove_store(uri).error().code, ErrorCode::kNotFound);
  (void)tell(port, {"DEL", "farheap:{h:mine}"});
  EXPECT_TRUE(open_store(uri, kKeep));
}

TEST(RedisFaults, ANewerFormatAndOtherBlocksAreRefused) {
  const auto port = shared_port();
  {
    auto store = open_or_fail(uri_on(port, "/0/made"), kKeep);
  }
  const auto larger = open_store(uri_on(port, "/0/made"), {.block_bytes = 65536, .lifetime = Lifetime::kKeep});
  ASSERT_FALSE(larger);
  EXPECT_THAT(larger.error().message(), HasSubstr("blocks of 4096 bytes"));
  (void)tell(port, {"HSET", "farheap:{made:meta}", "format", "2"});
  const auto newer = open_store(uri_on(port, "/0/made"), kKeep);
  ASSERT_FALSE(newer);
  EXPECT_THAT(newer.error().message(), HasSubstr("format 2"));
}

TEST(RedisFaults, AStoreThatWasRemovedStopsWhoeverUsesIt) {
  const auto uri = uri_on(shared_port(), "/0/removed");
  ReplyProxy proxy(shared_port());
  auto store = open_or_fail(uri_on(proxy.port(), "/0/removed"), kKeep);
  (void)put_blocks(*store, 0, make_blocks(0, 1, 4096));
  ASSERT_TRUE(remove_store(uri));
  const auto page = make_blocks(1, 1, 4096);
  Put put{.block = 1, .from = page};
  EXPECT_THAT(message_of(store->put({&put, 1})), HasSubstr("older contents"));
  Bytes into(4096);
  Get get{.block = 0, .into = into};
  EXPECT_FALSE(store->get({&get, 1}));
  EXPECT_EQ(get.outcome, Outcome::kFailed);
}

TEST(RedisFaults, AStoreThatWasMadeAnewIsNotWrittenByWhoeverHasTheOldOne) {
  const auto uri = uri_on(shared_port(), "/0/anew");
  auto old = open_or_fail(uri, kKeep);
  (void)put_blocks(*old, 0, make_blocks(0, 1, 4096));
  ASSERT_TRUE(remove_store(uri));
  auto anew = open_or_fail(uri, kKeep);
  (void)put_blocks(*anew, 0, make_blocks(0, 1, 4096, 1));
  const auto page = make_blocks(0, 1, 4096, 2);
  Put puts[] = {{.block = 0, .from = page}, {.block = 1, .from = page}};
  EXPECT_FALSE(old->put(puts));
  EXPECT_FALSE(old->add("n", 1));
  EXPECT_EQ(expect_blocks(*anew, 0, 1, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*anew, 1, 1), Outcome::kAbsent);
  EXPECT_EQ(anew->add("n", 0).value(), 0);
  EXPECT_EQ(anew->usage()->blocks, 1u);
}

TEST(RedisFaults, AScratchStoreIsGoneWithTheLastProcessThatHasIt) {
  const auto uri = uri_on(shared_port(), "/3/parent");
  const auto left = [&] { return tell(shared_port(), {"INFO", "keyspace"}).text; };
  auto store = open_or_fail(uri);
  (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
  EXPECT_THAT(left(), HasSubstr("db3"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    (void)!read(ends[0], &byte, 1);  // until the parent has let go
    const bool is_there = expect_blocks(*store, 0, 100) == Outcome::kOk;
    store.reset();
    _exit(is_there ? 0 : 1);
  }
  close(ends[0]);
  store.reset();
  auto another = open_or_fail(uri);  // collects what nobody has: not this
  another.reset();
  EXPECT_THAT(left(), HasSubstr("db3"));
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(left(), Not(HasSubstr("db3")));
}

std::string keyspace() { return tell(shared_port(), {"INFO", "keyspace"}).text; }

// The one scratch store below a name: its id, and what the server knows of when it was heard of.
struct Entry {
  std::string id, note;
};
Entry entry_of(unsigned database, const std::string& parent) {
  const auto key = store::redis::Keys(parent).scratch();
  const auto all = tell_in(shared_port(), database, {"HGETALL", key});
  if (all.elements.size() != 2) throw std::runtime_error("not one scratch store");
  return {all.elements[0].text, all.elements[1].text};
}

// As if it were on another machine, where it was last heard of just now, or in the year 2001.
void move_elsewhere(unsigned database, const std::string& parent, bool is_old, unsigned grace_s = 3600) {
  const auto entry = entry_of(database, parent);
  const auto space = entry.note.find(' '), second = entry.note.find(' ', space + 1);
  const auto when = is_old ? " 1000000000" : entry.note.substr(space, second - space);
  (void)tell_in(shared_port(), database,
                {"HSET", store::redis::Keys(parent).scratch(), entry.id,
                 entry.note.substr(0, space) + when + " " + std::to_string(grace_s) + " elsewhere"});
}

void leave_a_scratch_store(const std::string& uri) {
  const pid_t child = fork();
  if (child == 0) {
    auto store = open_or_fail(uri);
    (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(RedisFaults, WhatAKilledProgramLeftIsCollectedByTheNext) {
  const auto uri = uri_on(shared_port(), "/4/parent");
  leave_a_scratch_store(uri);
  EXPECT_THAT(keyspace(), HasSubstr("db4"));
  const auto listed = list_stores(uri);
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().lifetime, Lifetime::kScratch);
  EXPECT_FALSE(listed->front().in_use);
  open_or_fail(uri).reset();
  EXPECT_THAT(keyspace(), Not(HasSubstr("db4")));
}

// Whether it has ended or lost its connection cannot be told from here.
TEST(RedisFaults, WhatAProgramOnAnotherMachineLeftIsCollectedAfterItsGrace) {
  const auto uri = uri_on(shared_port(), "/4/parent");
  leave_a_scratch_store(uri);
  move_elsewhere(4, "parent", false);
  open_or_fail(uri).reset();
  EXPECT_TRUE(list_stores(uri)->front().in_use);
  move_elsewhere(4, "parent", true);
  EXPECT_FALSE(list_stores(uri)->front().in_use);
  open_or_fail(uri).reset();
  EXPECT_THAT(keyspace(), Not(HasSubstr("db4")));
}

// Servers drop idle connections (`timeout`), and so do people and routers.
TEST(RedisFaults, AScratchStoreWhoseConnectionWasDroppedIsNotTakenForLeft) {
  const auto uri = uri_on(shared_port(), "/5/parent");
  auto store = open_or_fail(uri);
  (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
  for (const bool is_elsewhere : {false, true}) {
    if (is_elsewhere) move_elsewhere(5, "parent", false);
    (void)tell(shared_port(), {"CLIENT", "KILL", "TYPE", "normal"});
    open_or_fail(uri).reset();
    EXPECT_TRUE(list_stores(uri)->front().in_use);
    EXPECT_FALSE(remove_store(list_stores(uri)->front().uri));
  }
  EXPECT_EQ(expect_blocks(*store, 0, 100), Outcome::kOk);
  store.reset();
  EXPECT_THAT(keyspace(), Not(HasSubstr("db5")));
}

// Also a program that is stopped and may go on, whose connection the server still has.
TEST(RedisFaults, AScratchStoreThatIsConnectedIsInUseHoweverOld) {
  const auto uri = uri_on(shared_port(), "/6/parent");
  auto store = open_or_fail(uri);
  (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
  move_elsewhere(6, "parent", true);
  open_or_fail(uri).reset();
  EXPECT_EQ(expect_blocks(*store, 0, 100), Outcome::kOk);
}

TEST(RedisFaults, AnIdleProgramIsHeardOfAlthoughItsConnectionsAreDropped) {
  const auto uri = uri_on(shared_port(), "/7/parent?grace_s=2");
  auto store = open_or_fail(uri);
  const auto drop = [] { (void)tell(shared_port(), {"CLIENT", "KILL", "TYPE", "normal"}); };
  for (int times = 0; times < 3; ++times) {
    drop();
    const auto before = entry_of(7, "parent").note;
    EXPECT_TRUE(await([&] { return entry_of(7, "parent").note != before; })) << before;
  }
}

// A forked child that does nothing goes on when its parent has ended.
TEST(RedisFaults, AnIdleForkedChildIsHeardOf) {
  auto store = open_or_fail(uri_on(shared_port(), "/8/parent?grace_s=2"));
  (void)put_blocks(*store, 0, make_blocks(0, 10, 4096));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    (void)store->gets_in_flight(1);  // the pager's first question in a child
    (void)!read(ends[0], &byte, 1);
    const bool is_there = expect_blocks(*store, 0, 10) == Outcome::kOk;
    store.reset();
    _exit(is_there ? 0 : 1);
  }
  close(ends[0]);
  store.reset();
  const auto before = entry_of(8, "parent").note;
  EXPECT_TRUE(await([&] { return entry_of(8, "parent").note != before; })) << before;
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(keyspace(), Not(HasSubstr("db8")));
}

TEST(RedisFaults, AProgramWhoseScratchStoreWasRemovedInErrorIsToldSo) {
  const auto uri = uri_on(shared_port(), "/9/parent?grace_s=1");
  int ends[2], told[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = open_or_fail(uri);
    (void)put_blocks(*store, 0, make_blocks(0, 10, 4096));
    (void)!write(ends[1], "o", 1);
    raise(SIGSTOP);
    Bytes page(4096);
    Get get{.block = 0, .into = page};
    const auto message = message_of(store->get({&get, 1}));
    (void)!write(told[1], message.data(), message.size());
    _exit(0);
  }
  char byte = 0;
  close(ends[1]), close(told[1]);
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
  move_elsewhere(9, "parent", false, 1);
  EXPECT_TRUE(await([&] {
    (void)tell(shared_port(), {"CLIENT", "KILL", "TYPE", "normal"});
    open_or_fail(uri_on(shared_port(), "/9/parent")).reset();
    return keyspace().find("db9") == std::string::npos;
  }));
  kill(child, SIGCONT);
  std::string message(4096, ' ');
  message.resize(static_cast<std::size_t>(std::max<ssize_t>(read(told[0], message.data(), message.size()), 0)));
  EXPECT_THAT(message, HasSubstr("longer than grace_s=1"));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ends[0]), close(told[0]);
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
