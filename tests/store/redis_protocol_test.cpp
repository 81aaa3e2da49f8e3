// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is read from URIs and from servers: nothing of it is trusted.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <functional>
#include <random>
#include <thread>

#include "store/redis/keys.hpp"
#include "store/redis/nodes.hpp"
#include "store/redis/place.hpp"
#include "store/redis/replies.hpp"
#include "tests/store/redis_fixture.hpp"

namespace farheap::test {
namespace {

using namespace store::redis;
using testing::HasSubstr;

Result<Place> parsed(const std::string& uri, const StoreOptions& options = {}) {
  static std::vector<std::unique_ptr<store::StoreUri>> kept;
  auto parts = store::parse_uri(uri, store::vocabulary());
  if (!parts) return fail(std::move(parts.error()));
  kept.push_back(std::make_unique<store::StoreUri>(std::move(*parts)));
  return parse_place(kept.back()->place, store::Parameters(*kept.back(), kept.back()->engine), options);
}

TEST(RedisPlace, SaysWhereTheServerIs) {
  const auto plain = parsed("redis://db.example");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->addresses.front().text(), "db.example:6379");
  EXPECT_EQ(plain->database, 0u);
  EXPECT_EQ(plain->name, "farheap");
  const auto whole = parsed("redis://[::1]:7000/3/app.v-2?timeout_ms=7&patience_s=8&replicas=2");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->addresses.front().text(), "[::1]:7000");
  EXPECT_EQ(whole->database, 3u);
  EXPECT_EQ(whole->name, "app.v-2");
  EXPECT_EQ(whole->timeout_ms, 7);
  EXPECT_EQ(whole->patience_s, 8);
  EXPECT_EQ(whole->replicas, 2u);
  const auto cluster = parsed("redis+cluster://a,b:1,c/app");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->addresses.size(), 3u);
  EXPECT_EQ(cluster->addresses[1].port, 1);
  EXPECT_EQ(cluster->name, "app");
}

TEST(RedisPlace, KeepsThePasswordToItself) {
  const auto place = parsed("redis://ann:p%40ss@h/1");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->user, "ann");
  EXPECT_EQ(place->password.view(), "p@ss");
  EXPECT_EQ(place->shown.find("ss"), std::string::npos) << place->shown;
  const auto wrong = parsed("redis://ann:secret@h/one");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message().find("secret"), std::string::npos) << wrong.error().message();
}

TEST(RedisPlace, FindsWhereThePathOfASocketEnds) {
  TemporaryFolder folder;
  const auto in_cwd = folder.path();
  std::string short_name = "/tmp/farheap-socket-XXXXXX";
  ASSERT_NE(mkdtemp(short_name.data()), nullptr);
  ASSERT_EQ(mkdir((short_name + "/1000").c_str(), 0700), 0);
  const auto path = short_name + "/1000/s";
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  for (const std::string rest : {"", "/5", "/5/app"}) {
    const auto place = parsed("redis://" + path + rest);
    ASSERT_TRUE(place) << place.error().message();
    EXPECT_EQ(place->addresses.front().socket, path);
    EXPECT_EQ(place->database, rest.empty() ? 0u : 5u);
    EXPECT_EQ(place->name, rest == "/5/app" ? "app" : "farheap");
  }
  close(file);
  std::filesystem::remove_all(short_name);
  // The server is away: what looks like a database is one.
  EXPECT_EQ(parsed("redis:///no/where.sock/7/app")->addresses.front().socket, "/no/where.sock");
  EXPECT_EQ(parsed("redis:///no/where.sock/7")->database, 7u);
  EXPECT_EQ(parsed("redis:///no/where.sock")->addresses.front().socket, "/no/where.sock");
}

TEST(RedisPlace, WhatIsNoPlaceIsRefusedWithTheRightForm) {
  for (const std::string uri :
       {"redis:", "redis:h", "redis://", "redis:///", "redis://h:0", "redis://h:x", "redis://h/x", "redis://h/1/a b",
        "redis://h/1/{a}", "redis://a,b", "redis://h/1/", "redis+cluster://", "redis+cluster://a,,b",
        "redis+cluster:///tmp/s", "rediss:///tmp/s", "redis://[::1"}) {
    const auto place = parsed(uri);
    ASSERT_FALSE(place) << uri;
    EXPECT_THAT(place.error().message(), HasSubstr("write it as redis")) << uri;
  }
  EXPECT_FALSE(parsed("redis://h?timeout_ms=0"));
  EXPECT_FALSE(parsed("redis://h?patience_s=long"));
}

TEST(RedisKeys, SlotsAreThoseOfTheSpecification) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar"));
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  const Keys keys("app", "0123");
  EXPECT_EQ(slot_of(keys.group(77)), slot_of(beside(keys.group(77), "beat", "x-1")));
  std::uint64_t group = 0;
  EXPECT_TRUE(keys.is_group(keys.group(0xABCDEF), group));
  EXPECT_EQ(group, 0xABCDEFu);
  for (const auto& key :
       {keys.meta(), keys.scratch(), keys.counter("1}"), beside(keys.group(1), "beat", "x"),
        Keys("ap", "0123").group(1), Keys("app", "4567").group(1), std::string("farheap:{app:0123:}")}) {
    EXPECT_FALSE(keys.is_group(key, group)) << key;
  }
}

TEST(RedisNodes, RedirectionsThatAreNoneAreRefused) {
  const Address asked{.host = "10.0.0.1", .port = 7000, .socket = {}};
  EXPECT_EQ(parse_redirection("3999 127.0.0.1:6381", asked)->address.text(), "127.0.0.1:6381");
  EXPECT_EQ(parse_redirection("3999 :6381", asked)->address.text(), "10.0.0.1:6381");
  EXPECT_EQ(parse_redirection("3999 ::1:6381", asked)->address.host, "::1");
  for (const std::string text :
       {"", "3999", "16384 h:1", "-1 h:1", "x h:1", "3999 h", "3999 h:0", "3999 h:70000", " "}) {
    EXPECT_FALSE(parse_redirection(text, asked)) << text;
  }
}

// A server that answers each request, and greets none, with what it is told to.
class FalseServer {
 public:
  explicit FalseServer(std::function<std::string()> answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener_, 16) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      throw std::runtime_error("no socket for a server");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FalseServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  FalseServer(const FalseServer&) = delete;
  FalseServer& operator=(const FalseServer&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  // One client at a time; the connection ends with each answer, so that nobody waits for more.
  void serve() {
    for (int client = 0; (client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      char request[65536];
      while (recv(client, request, sizeof request, 0) > 0) {
        const auto answer = answer_();
        if (send(client, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) break;
        shutdown(client, SHUT_WR);
      }
      close(client);
    }
  }
  std::function<std::string()> answer_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

Result<Reply> read_one(const std::string& bytes, std::size_t most = kSmallReply) {
  FalseServer server([&] { return bytes; });
  Socket socket;
  Replies replies(socket);
  Reply reply;
  char hello[] = "PING\r\n";
  iovec piece{hello, sizeof hello - 1};
  if (!socket.connect({.host = "127.0.0.1", .port = server.port(), .socket = {}}, 5000) || !socket.send({&piece, 1})) {
    throw std::runtime_error(socket.why());
  }
  if (replies.whole(reply, most)) return reply;
  return fail(replies.is_nonsense() ? ErrorCode::kCorrupt : ErrorCode::kIo, socket.why(), "", "");
}

TEST(RedisReplies, AreReadWhole) {
  EXPECT_EQ(read_one("+OK\r\n")->text, "OK");
  EXPECT_EQ(read_one("-ERR no\r\n")->kind, Kind::kError);
  EXPECT_EQ(read_one(":-42\r\n")->number, -42);
  EXPECT_EQ(read_one("$-1\r\n")->kind, Kind::kNil);
  EXPECT_EQ(read_one("*-1\r\n")->kind, Kind::kNil);
  EXPECT_EQ(read_one("$0\r\n\r\n")->text, "");
  const std::string large(300'000, 'x');
  EXPECT_EQ(read_one("$300000\r\n" + large + "\r\n", large.size())->text, large);
  const auto nested = read_one("*3\r\n:1\r\n*1\r\n$2\r\nab\r\n+c\r\n");
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->elements[1].elements[0].text, "ab");
}

TEST(RedisReplies, AreRefusedWhereTheyTakeMoreThanWasAskedFor) {
  const std::string text = "$5\r\nabcde\r\n";
  EXPECT_TRUE(read_one(text, 5));
  EXPECT_TRUE(read_one("*2\r\n" + text + text, 10 + 2 * sizeof(Reply)));
  for (const auto& reply : {read_one(text, 4), read_one("*2\r\n" + text + text, 9 + 2 * sizeof(Reply)),
                            read_one("*2\r\n", 2 * sizeof(Reply) - 1), read_one("+long\r\n", 3)}) {
    ASSERT_FALSE(reply);
    EXPECT_THAT(reply.error().what, HasSubstr("longer than what it was asked for"));
  }
}

TEST(RedisReplies, NonsenseEndsTheConnectionAndNothingElse) {
  for (const std::string bytes :
       {"HTTP/1.1 400 Bad Request\r\n", "\r\n", "+OK\n", "$5\r\nabcdefg\r\n", "$x\r\n", "$\r\n", "$-2\r\n",
        "$99999999999999999999\r\n", "$9223372036854775807\r\n", "*9223372036854775807\r\n", "*-7\r\n", ":1x\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"}) {
    const auto reply = read_one(bytes);
    ASSERT_FALSE(reply) << bytes;
    EXPECT_EQ(reply.error().code, ErrorCode::kCorrupt) << bytes;
  }
  EXPECT_EQ(read_one(std::string(100'000, 'x')).error().code, ErrorCode::kCorrupt);
  for (const std::string bytes : {"", "$10\r\nabc", "*2\r\n:1\r\n", "+O"}) {
    EXPECT_EQ(read_one(bytes).error().code, ErrorCode::kIo) << bytes;
  }
}

TEST(RedisReplies, AServerOfAnotherKindIsToldAtOnce) {
  FalseServer server([] { return "HTTP/1.1 400 Bad Request\r\n\r\n"; });
  const auto opened = open_store(uri_on(server.port(), ""));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(), HasSubstr("no answer of Redis"));
}

// Answers of a real server's forms, put together and changed at random: errors, never a crash, and no end of patience.
TEST(RedisReplies, RandomAnswersAreSurvived) {
  const std::string pieces[] = {"+OK\r\n",
                                ":1\r\n",
                                ":77\r\n",
                                "$-1\r\n",
                                "$8\r\n12345678\r\n",
                                "*2\r\n",
                                "*4\r\n",
                                "*0\r\n",
                                "-ERR x\r\n",
                                "-MOVED 1 127.0.0.1:1\r\n",
                                "-OOM command\r\n",
                                "$1\r\n1\r\n",
                                "$4096\r\n" + std::string(4096, 'p') + "\r\n",
                                "-LOADING\r\n",
                                "$58\r\n\r\nrun_id:abc\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n",
                                "$58\r\n\r\nrun_id:abc\r\nredis_version:7.0.15\r\nredis_mode:cluster   \r\n\r\n",
                                "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$0\r\n\r\n:1\r\n"};
  std::mt19937_64 random(7);
  FalseServer server([&] {
    std::string answer;
    for (auto left = 1 + random() % 8; left > 0; --left) answer += pieces[random() % std::size(pieces)];
    if (random() % 3 == 0) answer[random() % answer.size()] = static_cast<char>(random());
    if (random() % 5 == 0) answer.resize(random() % answer.size());
    return answer;
  });
  for (const std::string scheme : {"redis", "redis+cluster"}) {
    for (int i = 0; i < 1000; ++i) {
      const auto uri = scheme + "://127.0.0.1:" + std::to_string(server.port()) + "?patience_s=0&timeout_ms=1000";
      auto opened = open_store(uri, kKeep);
      EXPECT_FALSE(opened);
    }
  }
}

}  // namespace
}  // namespace farheap::test
