// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of Redis share: a server, and words to it beside the store's.
//
// Thread-safety: plain functions.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <farheap/store.hpp>
#include <string>
#include <vector>

#include "store/kinds.hpp"
#include "store/redis/connection.hpp"
#include "store/redis/keys.hpp"
#include "tests/store/servers.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {

inline const StoreOptions kKeep{.lifetime = Lifetime::kKeep};

inline TestServers redis_or_throw(const std::vector<std::string>& arguments = {}) {
  auto servers = start_redis(arguments);
  if (!servers) throw std::runtime_error(servers.error().message());
  return std::move(*servers);
}

// What a server answers to one command.
inline store::redis::Reply tell_in(std::uint16_t port, unsigned database, const std::vector<std::string>& words) {
  store::redis::Socket socket;
  store::redis::Replies replies(socket);
  store::redis::Requests requests;
  requests.command(2), requests.argument("SELECT"), requests.argument(std::uint64_t{database});
  requests.command(words.size());
  for (const auto& word : words) requests.argument(word);
  std::vector<iovec> pieces;
  requests.append(0, requests.mark(), pieces);
  store::redis::Reply reply;
  const bool answered = socket.connect({.host = "127.0.0.1", .port = port, .socket = {}}, 5000) &&
                        socket.send(pieces) && replies.whole(reply) && replies.whole(reply, 1 << 20);
  EXPECT_TRUE(answered) << socket.why();
  return reply;
}
inline store::redis::Reply tell(std::uint16_t port, const std::vector<std::string>& words) {
  return tell_in(port, 0, words);
}

// The keys of a store that is open; in a cluster of `port`, wherever its record is.
inline store::redis::Keys keys_of(std::uint16_t port, const std::string& name) {
  const auto meta = store::redis::Keys(name).meta();
  auto identity = tell(port, {"HGET", meta, "identity"});
  if (identity.is_error()) {
    EXPECT_TRUE(identity.text.starts_with("MOVED ")) << port << ": " << identity.text;  // MOVED 3999 127.0.0.1:6381
    identity = tell(static_cast<std::uint16_t>(std::atoi(identity.text.substr(identity.text.rfind(':') + 1).c_str())),
                    {"HGET", meta, "identity"});
  }
  EXPECT_EQ(identity.text.size(), 16u);
  return store::redis::Keys(name, identity.text);
}

inline std::string uri_on(std::uint16_t port, const std::string& rest) {
  return "redis://127.0.0.1:" + std::to_string(port) + rest;
}

inline std::string message_of(const Status& status) { return status ? "" : status.error().message(); }

// For tests that leave it as it is; those that break one have a server of their own.
inline TestServers& shared_server() {
  static TestServers servers = redis_or_throw();
  return servers;
}
inline std::uint16_t shared_port() { return shared_server().members.front()->port(); }

// Puts, a compare-and-swap, adds, gets and an erasure: each says what it is to say although an answer was lost.
inline void work(Store& store, std::uint64_t tint, std::int64_t& sum) {
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

}  // namespace farheap::test
