// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// etcd: what its server is for the faults of all engines.
#include <filesystem>

#include "engines/etcd/registry.hpp"
#include "tests/engines/server_faults.hpp"

namespace farheap::test {
namespace {

namespace etcd = engines::etcd;

Result<TestServers> start_one() {
  auto servers = start_etcd(1);
  if (servers) setenv("FARHEAP_TEST_ETCD", servers->members.front()->address().c_str(), 1);
  return servers;
}

// The cluster itself, for what a store does not do.
void set_key(const std::string& key, const std::string& value) {
  const std::string uri = std::string("etcd://") + std::getenv("FARHEAP_TEST_ETCD") + "/n";
  const auto parsed = store::parse_uri(uri, store::vocabulary());
  const auto client = std::move(*etcd::Client::open(parsed->place, store::Parameters(*parsed, "etcd"), {}));
  etcd::api::TxnRequest request;
  request.add_success()->mutable_request_put()->set_key(key);
  request.mutable_success(0)->mutable_request_put()->set_value(value);
  ASSERT_TRUE(client->transact(request));
}

}  // namespace

const FaultyEngine& faulty_engine() {
  static const FaultyEngine engine{
      .name = "etcd",
      .place = "//@",
      .form = "etcd://HOST:2379/NAME",
      .malformed = {"//", "//h/a/b", "//h/a b", "//,", "///name"},
      .variable = {},
      .open = engines::open_etcd,
      .keeper = &engines::kEtcdKeeper,
      .start = start_one,
      .forget = [](TestServer& server) { std::filesystem::remove_all(server.folder() + "/data"); },
      .empty_words = "cannot go on with the store",
      .put_foreign =
          [] {
            set_key("farheap/n/users", "theirs");
            return "the key 'farheap/n/users'";
          },
      .put_into_block_2 = [](const std::string& bytes) { set_key(etcd::keys_of({"n"}).block(2), bytes); },
      .put_about = [](const std::string& text) { set_key(etcd::keys_of({"n"}).about(), text); },
  };
  return engine;
}

}  // namespace farheap::test
