// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The talk between a recorder and a process that is to record itself: what is asked and refused, and that either end
// may go at any time.
#include "profile/attachment.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace farheap::profile {
namespace {

class AttachmentTest : public ::testing::Test {
 protected:
  AttachmentTest() : listening_(listen_for_recorders(getpid()).value()) {}
  ~AttachmentTest() override { close(listening_); }

  // What comes at the process when these bytes are sent.
  std::optional<RecordingRequest> request_of(std::string_view bytes) const {
    const int connection = connected();
    EXPECT_EQ(send(connection, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    auto request = next_request(listening_);
    close(connection);
    return request;
  }
  static int connected() {
    const int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    const std::string name = "farheap-record-" + std::to_string(getpid());
    std::memcpy(place.sun_path + 1, name.data(), name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&place), bytes), 0);
    return connection;
  }
  // The process's part: answers one request, and waits until the recorder has gone.
  std::thread answering(std::string refusal) const {
    return std::thread([this, refusal = std::move(refusal)] {
      const auto request = next_request(listening_);
      ASSERT_TRUE(request);
      EXPECT_EQ(request->folder, "/some folder");
      answer_request(request->connection, refusal);
      while (refusal.empty() && !has_hung_up(request->connection)) std::this_thread::yield();
      end_connection(request->connection);
    });
  }

  const int listening_;
};

TEST_F(AttachmentTest, LastsAsLongAsTheRecorder) {
  std::thread process = answering("");
  const auto connection = ask_to_record(getpid(), "/some folder");
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_FALSE(has_hung_up(*connection));
  end_request(*connection);
  process.join();
}

TEST_F(AttachmentTest, ARefusalSaysWhy) {
  std::thread process = answering("it follows a plan");
  const auto connection = ask_to_record(getpid(), "/some folder");
  process.join();
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kConflict);
  EXPECT_EQ(connection.error().why, "it follows a plan");
}

TEST_F(AttachmentTest, ALongRefusalIsCutShort) {
  std::thread process = answering(std::string(100'000, 'x'));
  const auto connection = ask_to_record(getpid(), "/some folder");
  process.join();
  ASSERT_FALSE(connection);
  EXPECT_GT(connection.error().why.size(), 1000u);
}

TEST_F(AttachmentTest, TheEndOfTheProcessIsSeen) {
  std::thread process([this] {
    const auto request = next_request(listening_);
    ASSERT_TRUE(request);
    answer_request(request->connection, "");
    end_connection(request->connection);
  });
  const auto connection = ask_to_record(getpid(), "/some folder");
  ASSERT_TRUE(connection) << connection.error().message();
  process.join();
  EXPECT_TRUE(has_hung_up(*connection));
  end_request(*connection);
}

TEST_F(AttachmentTest, OneThatSaysNothingOfUseIsSentAway) {
  for (const std::string_view bytes : {"x", "record 2 /folder", "record 1 ", "record 1 folder", "record 1"}) {
    EXPECT_FALSE(request_of(bytes)) << bytes;
  }
  close(connected());
  EXPECT_FALSE(next_request(listening_)) << "it went without a word";
  const auto request = request_of("record 1 /folder");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->folder, "/folder");
  end_connection(request->connection);
}

TEST_F(AttachmentTest, ThereIsOneListenerForAProcess) {
  const auto second = listen_for_recorders(getpid());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
}

TEST_F(AttachmentTest, AProcessThatDoesNotListenIsSaid) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const auto connection = ask_to_record(child, "/folder");
  waitpid(child, nullptr, 0);
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kNotFound);
}

// Whoever takes its name gets nobody's profile.
TEST_F(AttachmentTest, AnotherProcessOfThatNameIsNotAsked) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const int in_its_place = listen_for_recorders(child).value();
  const auto connection = ask_to_record(child, "/folder");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(in_its_place);
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().code, ErrorCode::kPermission);
}

}  // namespace
}  // namespace farheap::profile
