// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A server that is moved: its name leads to another address, and a program that runs finds it there. The C library's
// look-up is this test's own: a name is the port that it leads to just now.
#include <netdb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/store/redis_fixture.hpp"
#include "tests/store/reply_proxy.hpp"

namespace {

std::atomic<std::uint16_t> g_leads_to{0};  // 0: it is not known
std::atomic<bool> g_hangs{false};
std::atomic<unsigned> g_asked{0};

}  // namespace

extern "C" int getaddrinfo(const char* host, const char*, const addrinfo*, addrinfo** list) {
  ++g_asked;
  while (g_hangs) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (g_leads_to == 0 || std::string_view(host) != "moving.example") return EAI_NONAME;
  auto* const address = new sockaddr_in(farheap::test::loopback(g_leads_to));
  *list = new addrinfo{};
  (*list)->ai_addr = reinterpret_cast<sockaddr*>(address);
  (*list)->ai_addrlen = sizeof *address;
  (*list)->ai_family = AF_INET;
  return 0;
}

extern "C" void freeaddrinfo(addrinfo* list) {
  delete reinterpret_cast<sockaddr_in*>(list->ai_addr);
  delete list;
}

namespace farheap::test {
namespace {

struct RedisAddress : testing::Test {
  TestServers servers = redis_or_throw();
  std::unique_ptr<ReplyProxy> here = std::make_unique<ReplyProxy>(servers.members.front()->port());
  std::unique_ptr<ReplyProxy> there = std::make_unique<ReplyProxy>(servers.members.front()->port());
  std::unique_ptr<Store> store;

  void SetUp() override {
    g_hangs = false;
    g_leads_to = here->port();
    store = open_or_fail("redis://moving.example/0/moved?patience_s=20&timeout_ms=300", kKeep);
    (void)put_blocks(*store, 0, make_blocks(0, 10, 4096));
  }
  void move() {
    g_leads_to = there->port();
    here.reset();
  }
};

TEST_F(RedisAddress, IsLookedUpAgainWhenAServerWasMoved) {
  move();
  EXPECT_EQ(expect_blocks(*store, 0, 10), Outcome::kOk);
  EXPECT_EQ(put_blocks(*store, 5, make_blocks(5, 1, 4096, 1)).outcome, Outcome::kOk);
}

TEST_F(RedisAddress, IsLookedUpAgainInAForkedChild) {
  move();
  const pid_t child = fork();
  if (child == 0) _exit(expect_blocks(*store, 0, 10) == Outcome::kOk ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(expect_blocks(*store, 0, 10), Outcome::kOk);
}

// Whoever tells names is away, or waits for a lock that the program holds: the address of before will do.
TEST_F(RedisAddress, OfBeforeIsUsedWhereNothingIsToldAnew) {
  (void)tell(servers.members.front()->port(), {"CLIENT", "KILL", "TYPE", "normal"});
  g_leads_to = 0;
  EXPECT_EQ(expect_blocks(*store, 0, 10), Outcome::kOk);
  g_hangs = true;
  const unsigned asked = g_asked;
  EXPECT_TRUE(await([&] {
    (void)tell(servers.members.front()->port(), {"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_EQ(expect_blocks(*store, 0, 10), Outcome::kOk);
    return g_asked != asked;
  }));
  g_hangs = false;
}

}  // namespace
}  // namespace farheap::test
