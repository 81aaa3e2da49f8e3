// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A connection to one server, let in: user, database, a name that says whose it is, and what the server says of itself.
//
// Thread-safety: one thread at a time.
#pragma once

#include <farheap/result.hpp>
#include <string>

#include "store/redis/replies.hpp"
#include "store/redis/requests.hpp"
#include "store/redis/socket.hpp"

namespace farheap::store::redis {

// INFO of a server.
struct ServerFacts {
  std::string run_id;   // of this process of the server's
  std::string replica;  // of the history that its contents are a part of
  std::string version;
  std::string eviction;  // maxmemory_policy
  bool is_cluster = false;
  bool is_primary = true;
  bool is_loading = false;
  bool has_log = false;  // appendonly
};

class Connection {
 public:
  explicit Connection(unsigned node) : node_(node), replies_(socket_) {}

  // Ready for commands. The error's code tells whether asking again may help: kUnavailable may.
  [[nodiscard]] Status open(const Place& place, const Address& address, const std::string& client_name);

  [[nodiscard]] unsigned node() const { return node_; }
  [[nodiscard]] Socket& socket() { return socket_; }
  [[nodiscard]] Replies& replies() { return replies_; }
  [[nodiscard]] const ServerFacts& facts() const { return facts_; }
  // Which contents of which server: equal, and nothing came between.
  [[nodiscard]] std::string contents() const { return facts_.run_id + facts_.replica; }
  // By which the server knows this connection.
  [[nodiscard]] std::int64_t client_id() const { return client_id_; }

  // Sends and waits for the answers, none of which is an error of the connection itself. For what is rare. Each answer
  // takes at most so many bytes.
  [[nodiscard]] bool ask(Requests& requests, std::size_t count, std::vector<Reply>& replies,
                         std::size_t most = kSmallReply);

 private:
  [[nodiscard]] Status refused(const Place& place, const Address& address, const Reply& reply) const;
  [[nodiscard]] bool read_facts(const std::string& info);

  unsigned node_;
  Socket socket_;
  Replies replies_;
  ServerFacts facts_;
  std::int64_t client_id_ = 0;
};

// An error reply of the kind that passes: a server that loads, is busy, fails over.
[[nodiscard]] bool is_passing(std::string_view error);
// ... in words, with a remedy.
[[nodiscard]] Error explain(std::string_view error, std::string what, std::string subject);

}  // namespace farheap::store::redis
