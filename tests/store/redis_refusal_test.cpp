// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a Redis server refuses, and what is refused there: settings, users, keys of others, stores that were removed.
#include <signal.h>

#include "tests/store/redis_fixture.hpp"
#include "tests/store/reply_proxy.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;
using testing::Not;

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

}  // namespace
}  // namespace farheap::test
