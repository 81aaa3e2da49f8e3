// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of Redis share: a server, and words to it beside the store's.
//
// Thread-safety: plain functions.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <farheap/store.hpp>
#include <string>
#include <vector>

#include "store/kinds.hpp"
#include "store/redis/connection.hpp"
#include "tests/store/servers.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {

constexpr StoreOptions kKeep{.lifetime = Lifetime::kKeep};

inline TestServers redis_or_throw(const std::vector<std::string>& arguments = {}) {
  auto servers = start_redis(arguments);
  if (!servers) throw std::runtime_error(servers.error().message());
  return std::move(*servers);
}

// What a server answers to one command.
inline store::redis::Reply tell(std::uint16_t port, const std::vector<std::string>& words) {
  store::redis::Socket socket;
  store::redis::Replies replies(socket);
  store::redis::Requests requests;
  requests.command(words.size());
  for (const auto& word : words) requests.argument(word);
  std::vector<iovec> pieces;
  requests.append(0, requests.mark(), pieces);
  store::redis::Reply reply;
  const bool answered = socket.connect({.host = "127.0.0.1", .port = port, .socket = {}}, 5000) &&
                        socket.send(pieces) && replies.whole(reply);
  EXPECT_TRUE(answered) << socket.why();
  return reply;
}

inline std::string uri_on(std::uint16_t port, const std::string& rest) {
  return "redis://127.0.0.1:" + std::to_string(port) + rest;
}

}  // namespace farheap::test
