// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rediss: a server is who it says it is, or it is not talked to.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/store/redis_fixture.hpp"
#include "tests/store/reply_proxy.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;

class RedisTls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    make_certificate("own", "localhost", "");
    make_certificate("other", "elsewhere", "");
    make_certificate("curve", "localhost", "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1");
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string file(const std::string& name) { return folder_->path() + "/" + name; }
  static void make_certificate(const std::string& name, const std::string& host, const std::string& key) {
    const auto command = fmt::format(
        "openssl req -x509 {} -nodes -days 2 -subj /CN={} -addext subjectAltName=DNS:{} -keyout {} -out {} 2>/dev/null",
        key.empty() ? "-newkey rsa:2048" : key, host, host, file(name + ".key"), file(name + ".crt"));
    if (std::system(command.c_str()) != 0) throw std::runtime_error("openssl makes no certificate");
  }
  static TestServers server_with(const std::string& name, std::uint16_t& port) {
    port = free_port();
    return redis_or_throw({"--tls-port", std::to_string(port), "--tls-cert-file", file(name + ".crt"), "--tls-key-file",
                           file(name + ".key"), "--tls-ca-cert-file", file(name + ".crt"), "--tls-auth-clients", "no"});
  }
  static std::string uri(std::uint16_t port, const std::string& authority, const std::string& more = "") {
    return fmt::format("rediss://localhost:{}/0/app?ca_file={}{}", port, file(authority + ".crt"), more);
  }

  static TemporaryFolder* folder_;
};
TemporaryFolder* RedisTls::folder_ = nullptr;

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
