// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that was not written for it runs on a Redis server that breaks in mid-run: it goes on with what it had, or
// it ends with words. It never sees zeros.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "tests/store/redis_fixture.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;

// Fills 80 MB, says so, waits for a word, and reads all of it.
constexpr char kProgram[] =
    "import sys\n"
    "pages = [bytearray(i.to_bytes(4, 'big') * 16384) for i in range(1, 1221)]\n"
    "print('filled', flush=True)\n"
    "sys.stdin.readline()\n"
    "for _ in range(2):\n"
    "    for i, page in enumerate(pages): page[0:4] = (i + 1).to_bytes(4, 'big')\n"
    "print('wrong' if any(page != (i + 1).to_bytes(4, 'big') * 16384 for i, page in enumerate(pages)) else 'right')\n";

struct End {
  int status;
  std::string out, err;
};

End run_with(const std::string& uri, const std::function<void()>& meanwhile) {
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  const auto pipes_before = std::signal(SIGPIPE, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGPIPE, pipes_before);
    dup2(in[0], 0), dup2(out[1], 1), dup2(err[1], 2);
    execl(FARHEAP_TOOL, "farheap", "run", "--memory", "40M", "--store", uri.c_str(), "--", "python3", "-c", kProgram,
          nullptr);
    _exit(127);
  }
  close(in[0]), close(out[1]), close(err[1]);
  const auto read_all = [](int file, std::string& text) {
    char buffer[4096];
    for (ssize_t got = 0; (got = read(file, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
    close(file);
  };
  End end{};
  std::thread words([&] { read_all(err[0], end.err); });
  for (char byte = 0; end.out.find("filled\n") == std::string::npos && read(out[0], &byte, 1) == 1;) end.out += byte;
  meanwhile();
  EXPECT_TRUE(write(in[1], "\n", 1) == 1 || errno == EPIPE);  // it may have ended before it was told to go on
  std::signal(SIGPIPE, pipes_before);
  close(in[1]);
  read_all(out[0], end.out);
  words.join();
  waitpid(child, &end.status, 0);
  return end;
}

TEST(RedisRun, GoesOnWhenAServerWithALogWasKilled) {
  auto servers = redis_or_throw({"--appendonly", "yes", "--appendfsync", "no"});
  const auto end = run_with(servers.uri, [&] {
    servers.members.front()->kill();
    EXPECT_TRUE(servers.members.front()->start_again());
  });
  EXPECT_EQ(end.out, "filled\nright\n") << end.err;
  EXPECT_EQ(end.status, 0);
}

TEST(RedisRun, EndsWithWordsWhenAServerForgotEverything) {
  auto servers = redis_or_throw();
  const auto end = run_with(servers.uri, [&] {
    servers.members.front()->kill();
    EXPECT_TRUE(servers.members.front()->start_again());
  });
  EXPECT_EQ(end.out, "filled\n");
  EXPECT_NE(end.status, 0);
  EXPECT_THAT(end.err, HasSubstr("the server does not have it any more")) << end.err;
}

TEST(RedisRun, EndsWithWordsWhenAServerWasEmptied) {
  auto servers = redis_or_throw();
  const auto end = run_with(servers.uri, [&] { (void)tell(servers.members.front()->port(), {"FLUSHALL"}); });
  EXPECT_EQ(end.out, "filled\n");
  EXPECT_NE(end.status, 0);
  EXPECT_THAT(end.err, testing::AnyOf(HasSubstr("older contents"), HasSubstr("does not have it any more"))) << end.err;
}

TEST(RedisRun, WaitsForAServerThatStandsStill) {
  auto servers = redis_or_throw();
  auto& server = *servers.members.front();
  std::thread thaw;
  const auto end = run_with(servers.uri + "?timeout_ms=200", [&] {
    server.freeze();
    thaw = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      server.thaw();
    });
  });
  thaw.join();
  EXPECT_EQ(end.out, "filled\nright\n") << end.err;
  EXPECT_EQ(end.status, 0);
}

TEST(RedisRun, StandsStillWhileAServerIsFull) {
  auto servers = redis_or_throw({"--maxmemory", "30mb"});
  const auto port = servers.members.front()->port();
  std::thread make_room([&] {
    EXPECT_TRUE(await([&] {
      return tell(port, {"INFO", "errorstats"}).text.find("errorstat_OOM") != std::string::npos;
    })) << "it refused nothing";
    EXPECT_EQ(tell(port, {"CONFIG", "SET", "maxmemory", "0"}).text, "OK");
  });
  const auto end = run_with(servers.uri, [] {});
  make_room.join();
  EXPECT_EQ(end.out, "filled\nright\n") << end.err;
  EXPECT_EQ(end.status, 0);
  EXPECT_THAT(end.err, HasSubstr("maxmemory")) << end.err;
}

// The program is idle, the server drops its connections, another run begins and ends, and the first one goes on.
TEST(RedisRun, AnIdleProgramKeepsItsStoreWhenTheServerDropsItsConnections) {
  auto servers = redis_or_throw({"--timeout", "1"});
  const auto port = servers.members.front()->port();
  const auto end = run_with(servers.uri, [&] {
    EXPECT_TRUE(await([&] { return tell(port, {"CLIENT", "LIST"}).text.find("name=farheap:") == std::string::npos; }));
    const auto other = run_with(servers.uri, [] {});
    EXPECT_EQ(other.out, "filled\nright\n") << other.err;
  });
  EXPECT_EQ(end.out, "filled\nright\n") << end.err;
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(tell(port, {"DBSIZE"}).number, 0) << "what it left";
}

TEST(RedisRun, RunsOverAUnixSocket) {
  auto servers = redis_or_throw({"--unixsocket", "@/redis.sock"});
  const auto end = run_with("redis://" + servers.members.front()->folder() + "/redis.sock/2/app", [] {});
  EXPECT_EQ(end.out, "filled\nright\n") << end.err;
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(tell(servers.members.front()->port(), {"INFO", "keyspace"}).text.find("db2"), std::string::npos);
}

}  // namespace
}  // namespace farheap::test
