// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All the servers that the test of an engine needs, ready to be asked.
//
// Thread-safety: as TestServer.
#pragma once

#include <farheap/result.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/store/loopback.hpp"
#include "tests/store/test_server.hpp"

namespace farheap::test {

// A server that speaks TLS: files in PEM. Its URI has only the scheme, the host and the name.
struct ServerTls {
  std::string certificate, key;
  std::string clients;  // who may vouch for clients; empty: they need no certificates
};

// All that one engine needs.
struct TestServers {
  std::vector<std::unique_ptr<TestServer>> members;
  std::string uri;  // of the namespace `contract` there: "redis://127.0.0.1:7001/0/contract"
  // Variables that the engine reads, and where the build's farheap-engines is; set them before it is opened.
  std::vector<std::pair<std::string, std::string>> environment;
  void set_environment() const;
};
// kUnavailable, with what was looked for, if the program is not on this machine.
[[nodiscard]] Result<TestServers> start_redis(const std::vector<std::string>& arguments = {});
[[nodiscard]] Result<TestServers> start_redis_cluster();  // three primaries with a replica each
// Three primaries that call themselves localhost. Their certificate vouches for itself.
[[nodiscard]] Result<TestServers> start_redis_cluster_by_tls(const ServerTls& tls);
[[nodiscard]] Result<TestServers> start_etcd(unsigned count, const std::vector<std::string>& arguments = {});
[[nodiscard]] Result<TestServers> start_etcd_by_tls(const ServerTls& tls);
[[nodiscard]] Result<TestServers> start_bigtable();
// Pages in one, what must agree in the other.
[[nodiscard]] Result<TestServers> start_redis_and_etcd();
[[nodiscard]] Result<TestServers> start_datastore();
[[nodiscard]] Result<TestServers> start_spanner();

}  // namespace farheap::test
