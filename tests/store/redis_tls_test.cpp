// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rediss: a server is who it says it is, or it is not talked to.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/store/certificates.hpp"
#include "tests/store/redis_fixture.hpp"
#include "tests/store/reply_proxy.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;

class RedisTls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    files_ = new Certificates;
    files_->make("own", "localhost");
    files_->make("other", "elsewhere");
    files_->make("curve", "localhost", Certificates::kCurve);
    files_->make("me", "client");
    files_->make("my-curve", "client", Certificates::kCurve);
  }
  static void TearDownTestSuite() { delete files_; }

  // `clients`: who may vouch for clients; without, they need no certificate.
  static TestServers server_with(const std::string& name, std::uint16_t& port, const std::string& clients = "") {
    port = free_port();
    return redis_or_throw({"--tls-port", std::to_string(port), "--tls-cert-file", files_->certificate(name),
                           "--tls-key-file", files_->key(name), "--tls-ca-cert-file",
                           files_->certificate(clients.empty() ? name : clients), "--tls-auth-clients",
                           clients.empty() ? "no" : "yes"});
  }
  static std::string uri(std::uint16_t port, const std::string& authority, const std::string& more = "") {
    return fmt::format("rediss://localhost:{}/0/app?ca_file={}{}", port, files_->certificate(authority), more);
  }
  static std::string refused(const std::string& uri) {
    const auto opened = open_store(uri, kKeep);
    EXPECT_FALSE(opened) << uri;
    return opened ? "" : opened.error().message();
  }

  static Certificates* files_;
};
Certificates* RedisTls::files_ = nullptr;

TEST_F(RedisTls, BlocksGoThroughAndComeBack) {
  for (const std::string name : {"own", "curve"}) {
    std::uint16_t port = 0;
    auto servers = server_with(name, port);
    auto store = open_or_fail(uri(port, name), kKeep);
    (void)put_blocks(*store, 0, make_blocks(0, 1000, 4096));
    EXPECT_EQ(expect_blocks(*store, 0, 1000), Outcome::kOk);
    EXPECT_EQ(store->add("n", 2).value(), 2);
    auto flying = store->gets_in_flight(4);
    ASSERT_NE(flying, nullptr);
    Bytes page(4096);
    Get get{.block = 7, .into = page};
    ASSERT_TRUE(flying->begin(get));
    while (flying->take() == nullptr) usleep(100);
    EXPECT_TRUE(page == make_blocks(7, 1, 4096));
    const pid_t child = fork();
    if (child == 0) _exit(expect_blocks(*store, 500, 20) == Outcome::kOk ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(expect_blocks(*store, 0, 1000), Outcome::kOk);
  }
}

TEST_F(RedisTls, AServerThatNobodyVouchesForIsRefused) {
  std::uint16_t port = 0;
  auto servers = server_with("own", port);
  const auto opened = open_store(uri(port, "other"), kKeep);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), HasSubstr("no authority that is trusted"));
}

TEST_F(RedisTls, AServerOfAnotherNameIsRefused) {
  std::uint16_t port = 0;
  auto servers = server_with("other", port);
  const auto opened = open_store(uri(port, "other"), kKeep);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), HasSubstr("another host's"));
}

TEST_F(RedisTls, AServerOfAnotherNameIsTakenWhereThatNameIsSaid) {
  std::uint16_t port = 0;
  auto servers = server_with("other", port);
  auto store = open_or_fail(uri(port, "other", "&server_name=elsewhere"), kKeep);
  EXPECT_EQ(put_blocks(*store, 0, make_blocks(0, 10, 4096)).outcome, Outcome::kOk);
}

TEST_F(RedisTls, AServerThatAsksWhoWeAreIsShownTheCertificate) {
  for (const std::string me : {"me", "my-curve"}) {
    for (const std::string name : {"own", "curve"}) {
      std::uint16_t port = 0;
      auto servers = server_with(name, port, me);
      auto store = open_or_fail(uri(port, name, files_->shown(me)), kKeep);
      EXPECT_EQ(put_blocks(*store, 0, make_blocks(0, 100, 4096)).outcome, Outcome::kOk) << me << " to " << name;
      EXPECT_EQ(expect_blocks(*store, 0, 100), Outcome::kOk) << me << " to " << name;
      store.reset();
      const std::string hurry = "&timeout_ms=1000&patience_s=1";
      EXPECT_THAT(refused(uri(port, name, hurry)), HasSubstr("it probably wants a certificate"));
      const std::string stranger = me == "me" ? "my-curve" : "me";
      EXPECT_THAT(refused(uri(port, name, hurry + files_->shown(stranger))), HasSubstr("TLS"));
    }
  }
}

TEST_F(RedisTls, FilesThatAreNoCertificateOrNotItsKeyAreRefusedInWords) {
  const auto with = [](const std::string& certificate, const std::string& key) {
    return refused(uri(1, "own", fmt::format("&cert_file={}&key_file={}", certificate, key)));
  };
  const auto certificate = files_->certificate("me"), key = files_->key("me");
  EXPECT_THAT(with(certificate, files_->key("own")), HasSubstr("it is not the key of"));
  EXPECT_THAT(with(certificate, files_->key("my-curve")), HasSubstr("it is not the key of"));
  EXPECT_THAT(with(files_->certificate("my-curve"), files_->key("curve")), HasSubstr("it is not the key of"));
  EXPECT_THAT(with(certificate, certificate), HasSubstr("others than its owner may use it")) << "as if it were a key";
  std::filesystem::permissions(certificate, std::filesystem::perms(0600));
  EXPECT_THAT(with(certificate, certificate), HasSubstr("there is no key"));
  EXPECT_THAT(with(key, key), HasSubstr("there is no certificate"));
  EXPECT_THAT(with(certificate, "/no/such/file"), HasSubstr("it cannot be read"));
  EXPECT_THAT(with(certificate, ""), HasSubstr("the other one of the two is missing"));
  const auto locked = files_->key("locked");
  const auto command = fmt::format("openssl pkey -in {} -aes128 -passout pass:x -out {}", key, locked);
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_THAT(with(certificate, locked), HasSubstr("is encrypted"));
}

// They were taken and not used: what was meant to be by TLS went in the clear.
TEST_F(RedisTls, WhatIsForTlsIsRefusedWithoutIt) {
  EXPECT_THAT(refused("redis://localhost:1/0/app?ca_file=" + files_->certificate("own")), HasSubstr("rediss://"));
  EXPECT_THAT(refused("redis+cluster://localhost:1/app?server_name=a"), HasSubstr("rediss+cluster://"));
}

TEST_F(RedisTls, AClusterIsReachedByTls) {
  auto started =
      start_redis_cluster_by_tls({files_->certificate("own"), files_->key("own"), files_->certificate("own")});
  ASSERT_TRUE(started) << started.error().message();
  const auto parameters = "?ca_file=" + files_->certificate("own");
  auto store = open_or_fail(started->uri + parameters + files_->shown("own"), kKeep);
  EXPECT_THAT(store->describe(), HasSubstr("rediss+cluster://"));
  EXPECT_EQ(put_blocks(*store, 0, make_blocks(0, 1000, 4096)).outcome, Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, 0, 1000), Outcome::kOk);
  EXPECT_EQ(store->add("n", 2).value(), 2);
  const pid_t child = fork();
  if (child == 0) _exit(expect_blocks(*store, 0, 1000) == Outcome::kOk ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  store.reset();
  EXPECT_THAT(refused(started->uri + parameters + "&timeout_ms=1000&patience_s=1"), HasSubstr("wants a certificate"));
  EXPECT_THAT(refused(fmt::format("rediss://localhost:{}/0/app{}{}", started->members[0]->port(), parameters,
                                  files_->shown("own"))),
              HasSubstr("write rediss+cluster://"));
}

TEST_F(RedisTls, AServerWithoutTlsIsRefused) {
  auto servers = redis_or_throw();
  const auto opened = open_store(uri(servers.members.front()->port(), "own", "&timeout_ms=300"), kKeep);
  ASSERT_FALSE(opened);
  EXPECT_FALSE(open_store("rediss://localhost:1/0/app?ca_file=/no/such/file"));
}

TEST_F(RedisTls, ALostAnswerIsAskedForAgain) {
  std::uint16_t port = 0;
  auto servers = server_with("own", port);
  ReplyProxy proxy(port);
  auto store = open_or_fail(uri(proxy.port(), "own", "&timeout_ms=200"), kKeep);
  for (unsigned round = 0; round < 12; ++round) {
    proxy.lose(round % 6, round % 2 == 0 ? ReplyProxy::Loss::kCut : ReplyProxy::Loss::kSwallow);
    ASSERT_EQ(put_blocks(*store, 60, make_blocks(60, 10, 4096, round)).outcome, Outcome::kOk);
    ASSERT_EQ(expect_blocks(*store, 60, 10, round), Outcome::kOk);
    ASSERT_EQ(store->add("n", 1).value(), round + 1);
  }
  // A byte that was changed on the way is found out by TLS.
  proxy.lose(0, ReplyProxy::Loss::kGarble);
  ASSERT_EQ(expect_blocks(*store, 60, 10, 11), Outcome::kOk);
  EXPECT_GE(proxy.losses(), 6u);
}

}  // namespace
}  // namespace farheap::test
