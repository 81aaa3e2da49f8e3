// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A server that wants to do harm by what it answers, before a login and after it: the client's memory stays small, and
// the call ends by itself. Each answer of a whole session is flooded in turn. The client is a process of its own, whose
// peak of memory is looked at.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "tests/store/redis_fixture.hpp"
#include "tests/store/reply_proxy.hpp"

namespace farheap::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostGrowth = 16 << 20;  // of which the session itself needs half a megabyte
constexpr unsigned kSeconds = 20;              // a call ends after patience_s=1 and timeout_ms=300

std::size_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
  }
  return 0;
}

// Whatever comes of it. The answers are what counts; the first that is not as it should be ends the session. Whether
// all was as it should be.
bool work(const std::string& uri) {
  const std::string patience = "?patience_s=1&timeout_ms=300";
  auto opened = open_store(uri + "/0/hostile" + patience, kKeep);
  if (!opened) return false;
  Store& store = **opened;
  const auto bytes = make_blocks(60, 20, 4096);
  Bytes into(bytes.size()), page(4096);
  Put put{.block = 60, .from = bytes};
  if (!store.put({&put, 1})) return false;
  Get gets[] = {{.block = 60, .into = into}, {.block = 61, .into = page}};
  if (!store.get(gets)) return false;
  Put swap{.block = 61, .from = page, .expected = gets[1].version};
  if (!store.put({&swap, 1})) return false;
  Get known{.block = 61, .into = page, .known = swap.version};
  if (!store.get({&known, 1}) || !store.add("n", 1) || !store.erase(65, 2) || !store.usage()) return false;
  if (!list_stores(uri + patience)) return false;
  return open_store(uri + "/0/hostile-scratch" + patience).has_value();
}

struct Session {
  std::size_t grown = 0;
  bool all_well = false;
};

// In a process of its own: by how much its peak grew. It is ended where it does not end.
Session growth_of_a_session(const std::string& uri) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak is what there is now
    const std::size_t before = peak_bytes();
    Session session;
    session.all_well = work(uri);
    session.grown = peak_bytes() - before;
    _exit(write(ends[1], &session, sizeof session) == sizeof session ? 0 : 1);
  }
  close(ends[1]);
  Session session;
  const bool is_told = read(ends[0], &session, sizeof session) == sizeof session;
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(is_told && status == 0) << "the session did not end by itself: status " << status;
  return session;
}

std::string times(const std::string& text, unsigned count) {
  std::string all;
  for (unsigned i = 0; i < count; ++i) all += text;
  return all;
}

// Each answer in turn; every `step`th of them where it takes long.
void flood_every_answer(const ReplyProxy::Flood& flood, unsigned step = 1) {
  static TestServers servers = redis_or_throw();
  const auto port = servers.members.front()->port();
  unsigned flooded = 0, again = 0;
  for (unsigned skipped = 0;;) {
    (void)tell(port, {"FLUSHALL"});
    ReplyProxy proxy(port);
    proxy.flood(skipped, flood);
    const Session session = growth_of_a_session(uri_on(proxy.port(), ""));
    EXPECT_LT(session.grown, kMostGrowth) << "with answer " << skipped;
    if (testing::Test::HasFailure()) break;
    if (proxy.losses() != 0) {
      ++flooded;
      skipped += step;
      continue;
    }
    if (session.all_well) break;  // it had fewer answers
    // What the session before had sent could come after FLUSHALL: this one ended before its flood.
    ASSERT_LT(++again, 20u) << "no session gets to answer " << skipped;
  }
  EXPECT_GE(flooded * step, 20u) << "fewer answers were flooded than there were calls";
}

TEST(RedisHostile, ATextOfAGigabyteTakesNoMemory) {
  flood_every_answer({.start = "$1073741824\r\n", .again = std::string(65536, 'x')});
}

TEST(RedisHostile, ATextAsLongAsAServerMayMakeItTakesNoMemory) {
  flood_every_answer({.start = "$536870912\r\n", .again = std::string(65536, 'x')});
}

TEST(RedisHostile, AnArrayOfLongTextsTakesNoMemory) {
  flood_every_answer({.start = "*1000000\r\n", .again = "$1000000\r\n" + std::string(1'000'000, 'x') + "\r\n"});
}

TEST(RedisHostile, AnArrayWithoutEndTakesNoMemory) {
  flood_every_answer({.start = "*1048576\r\n", .again = times(":1\r\n", 4096)});
}

TEST(RedisHostile, ArraysInArraysTakeNoMemory) {
  flood_every_answer({.start = times("*1048576\r\n", 7), .again = times(":1\r\n", 4096)});
}

TEST(RedisHostile, NestingWithoutEndTakesNoMemory) {
  flood_every_answer({.start = "", .again = times("*1\r\n", 4096)});
}

TEST(RedisHostile, ErrorsWithoutEndTakeNoMemory) {
  flood_every_answer({.start = "", .again = times("-ERR no\r\n", 4096)});
}

TEST(RedisHostile, AnErrorWithoutEndTakesNoMemory) {
  flood_every_answer({.start = "-", .again = std::string(65536, 'x')});
}

TEST(RedisHostile, AnAnswerThatComesByteByByteEndsByPatience) {
  flood_every_answer({.start = "$8000\r\n", .again = "x", .pause = 20ms}, 4);
}

TEST(RedisHostile, AnAnswerWhoseElementsComeOneByOneEndsByPatience) {
  flood_every_answer({.start = "*110\r\n", .again = ":1\r\n", .pause = 200ms}, 4);
}

// Warnings of TLS, of which there may be any number. Nobody has said yet who he is.
TEST(RedisHostile, ATlsHandshakeWithoutEndEndsByPatience) {
  std::uint16_t port = 0;
  const int listener = listen_on_any(port);
  std::thread server([&] {
    for (int client = 0; (client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; close(client)) {
      const char warning[] = "\x15\x03\x03\x00\x02\x01\x5a";
      while (send_all(client, warning, sizeof warning - 1)) std::this_thread::sleep_for(20ms);
    }
  });
  EXPECT_LT(growth_of_a_session("rediss://127.0.0.1:" + std::to_string(port)).grown, kMostGrowth);
  shutdown(listener, SHUT_RDWR);
  server.join();
  close(listener);
}

}  // namespace
}  // namespace farheap::test
