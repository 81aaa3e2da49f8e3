// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a store on Redis is: what its URI says, taken apart.
//   redis://[USER@]HOST[:PORT][/DATABASE[/NAME]]
//   redis:///PATH/SOCKET[/DATABASE[/NAME]]
//   redis+cluster://[USER@]HOST[:PORT][,HOST[:PORT]]...[/NAME]
// By TLS: rediss:// and rediss+cluster://, which have no sockets.
// The user and the password: store/secrets.hpp.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/secret.hpp"
#include "store/kinds.hpp"
#include "store/redis/tls.hpp"

namespace farheap::store::redis {

struct Address {
  std::string host;
  std::uint16_t port = 6379;
  std::string socket;  // of a Unix domain socket: its path; `host` is empty
  bool operator==(const Address&) const = default;
  [[nodiscard]] std::string text() const;
};

struct Place {
  std::string scheme;  // "redis", "rediss", "redis+cluster", "rediss+cluster"
  std::string shown;   // the URI without parameters and secrets
  std::vector<Address> addresses;
  std::string user;
  base::Secret password;
  unsigned database = 0;
  std::string name = "farheap";
  bool is_named = false;  // NAME stands in the URI
  int timeout_ms = 5000;
  int patience_s = 60;
  unsigned grace_s = 3600;                 // a scratch store of a program that is not heard of is left for so long
  unsigned replicas = 0;                   // sync() waits for so many
  std::shared_ptr<const TlsSettings> tls;  // null: without
  [[nodiscard]] bool is_cluster() const { return scheme.ends_with("+cluster"); }
  [[nodiscard]] bool is_by_tls() const { return scheme.starts_with("rediss"); }
  // The URI of another namespace on the same server.
  [[nodiscard]] std::string uri_of(const std::string& other) const;
};

// kInvalidArgument, with the right form, if it is not of the form above; what reading the password's file says.
[[nodiscard]] Result<Place> parse_place(const std::string& place, const Parameters& parameters,
                                        const StoreOptions& options);

// "HOST", "HOST:PORT" or "[ADDRESS]:PORT"; false if it is none.
[[nodiscard]] bool parse_address(std::string_view text, Address& address);

}  // namespace farheap::store::redis
