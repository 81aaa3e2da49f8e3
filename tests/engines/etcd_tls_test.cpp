// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// etcd by TLS: a cluster is who it says it is, or it is not talked to; and so are we.
#include <fmt/format.h>

#include "tests/engines/engine_fixture.hpp"
#include "tests/store/certificates.hpp"
#include "tests/store/servers.hpp"

#ifdef __SANITIZE_ADDRESS__
// c-ares 1.18 loses the name of each look-up of "localhost", and we have no part in that: no frame of ours is in it.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libcares.so\n";
}
#endif

namespace farheap::test {
namespace {

using testing::HasSubstr;

class EtcdTls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    files_ = new Certificates;
    files_->make("own", "localhost");
    files_->make("other", "localhost");
    files_->make("elsewhere", "elsewhere");
    files_->make("me", "client");
  }
  static void TearDownTestSuite() { delete files_; }

  void start(const std::string& name, const std::string& clients = "") {
    auto started = start_etcd_by_tls(
        {files_->certificate(name), files_->key(name), clients.empty() ? "" : files_->certificate(clients)});
    if (!started) throw std::runtime_error(started.error().message());
    servers_ = std::move(*started);
  }
  // Where it is to be refused: all of the patience is waited for.
  auto open(const std::string& authority, const std::string& more = "", int patience_s = 2) const {
    const auto ca = authority.empty() ? "" : "&ca_file=" + files_->certificate(authority);
    const std::string patience = "?timeout_ms=2000&patience_s=" + std::to_string(patience_s);
    return open_here(engines::open_etcd, servers_.uri + patience + ca + more);
  }
  // On a busy machine a server takes its time for the first handshake.
  auto open_at_last(const std::string& authority, const std::string& more = "") const {
    return open(authority, more, 30);
  }

  static Certificates* files_;
  TestServers servers_;
};
Certificates* EtcdTls::files_ = nullptr;

TEST_F(EtcdTls, BlocksGoThroughAndComeBack) {
  start("own");
  auto store = open_at_last("own");
  ASSERT_TRUE(store) << words_of(store);
  EXPECT_EQ(put_blocks(**store, 0, make_blocks(0, 200, 4096)).outcome, Outcome::kOk);
  EXPECT_EQ(expect_blocks(**store, 0, 200), Outcome::kOk);
  EXPECT_EQ((*store)->add("n", 2).value(), 2);
}

TEST_F(EtcdTls, AServerThatNobodyVouchesForIsRefused) {
  start("own");
  EXPECT_FALSE(open("other"));
  EXPECT_FALSE(open("")) << "in the clear";
  EXPECT_TRUE(open_at_last("own"));
}

TEST_F(EtcdTls, AServerOfAnotherNameIsRefused) {
  start("elsewhere");
  EXPECT_FALSE(open("elsewhere"));
}

TEST_F(EtcdTls, AServerThatAsksWhoWeAreIsShownTheCertificate) {
  start("own", "me");
  EXPECT_FALSE(open("own"));
  EXPECT_FALSE(open("own", files_->shown("other")));
  auto store = open_at_last("own", files_->shown("me"));
  ASSERT_TRUE(store) << words_of(store);
  EXPECT_EQ(put_blocks(**store, 0, make_blocks(0, 20, 4096)).outcome, Outcome::kOk);
  EXPECT_EQ(expect_blocks(**store, 0, 20), Outcome::kOk);
}

TEST_F(EtcdTls, FilesThatAreMissingAreRefusedInWords) {
  servers_.uri = "etcd://localhost:1/contract";
  EXPECT_THAT(words_of(open("own", "&cert_file=" + files_->certificate("me"))), HasSubstr("is missing"));
  EXPECT_THAT(words_of(open("own", "&cert_file=/no/such&key_file=/no/such")), HasSubstr("it cannot be read"));
}

}  // namespace
}  // namespace farheap::test
