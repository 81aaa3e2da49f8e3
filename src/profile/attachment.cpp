// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/attachment.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/system_call.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::profile {

namespace {

constexpr std::string_view kRequest = "record 1 ";
constexpr std::size_t kMostText = 5000;  // a path, and some words
// A process answers at once, unless it is stopped or waits for its store.
constexpr timeval kPatience{10, 0};
// A recorder sends its request at once.
constexpr timeval kPatienceOfProcess{1, 0};

struct Address {
  explicit Address(std::int32_t process) {
    place.sun_family = AF_UNIX;
    const std::string name = fmt::format("farheap-record-{}", process);
    std::memcpy(place.sun_path + 1, name.data(), name.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&place); }
  sockaddr_un place{};
  socklen_t bytes;
};

Result<int> new_socket(const char* what, int flags = 0) {
  const int made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  if (made < 0) return fail(errno_error(errno, what, "socket"));
  return made;
}

std::optional<ucred> other_end(int connection) {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return std::nullopt;
  return who;
}

bool may_ask(const std::optional<ucred>& who) { return who && (who->uid == 0 || who->uid == geteuid()); }

// Nothing: the other end said nothing in time, or has gone.
std::optional<std::string> receive(int connection, timeval patience, int flags = 0) {
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string text(kMostText, '\0');
  ssize_t got = 0;
  do {
    got = base::system_call(SYS_recvfrom, connection, text.data(), text.size(), flags, nullptr, nullptr);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  return text;
}

bool send_text(int connection, std::string_view text) {
  return base::system_call(SYS_sendto, connection, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0) ==
         static_cast<long>(text.size());
}

}  // namespace

Result<int> listen_for_recorders(std::int32_t process) {
  constexpr char kWhat[] = "cannot listen for recorders";
  auto made = new_socket(kWhat, SOCK_NONBLOCK);  // who came may have gone again
  if (!made) return made;
  const Address address(process);
  constexpr int kMostWaiting = 8;
  if (base::system_call(SYS_bind, *made, address.get(), address.bytes) == 0 &&
      base::system_call(SYS_listen, *made, kMostWaiting) == 0) {
    return made;
  }
  Error error = errno_error(errno, kWhat, fmt::format("process {}", process));
  if (errno == EADDRINUSE) error.code = ErrorCode::kConflict;
  base::close_now(*made);
  return fail(std::move(error));
}

// While accept() waits it keeps the lowest free number of a descriptor, which the program may expect to get. So it is
// called when somebody has come.
std::optional<RecordingRequest> next_request(int listening, Patience patience) {
  pollfd coming{listening, POLLIN, 0};
  if (poll(&coming, 1, -1) <= 0) return std::nullopt;
  const auto accepted = static_cast<int>(base::system_call(SYS_accept4, listening, nullptr, nullptr, SOCK_CLOEXEC));
  if (accepted < 0) return std::nullopt;
  const os::ForUsAlone ours;
  const int connection = os::keep_descriptor(accepted);
  const bool may = may_ask(other_end(connection));
  const auto text =
      may ? receive(connection, kPatienceOfProcess, patience == Patience::kNone ? MSG_DONTWAIT : 0) : std::nullopt;
  const bool is_request = text && text->starts_with(kRequest) && text->size() > kRequest.size();
  if (is_request && (*text)[kRequest.size()] == '/') return RecordingRequest{connection, text->substr(kRequest.size())};
  if (may && !text && patience == Patience::kNone) return RecordingRequest{connection, {}};  // he may be about to ask
  answer_request(connection,
                 may ? "it is of another version of farheap" : "it records for its own user and root alone");
  end_connection(connection);
  return std::nullopt;
}

void end_connection(int connection) {
  base::system_call(SYS_shutdown, connection, SHUT_RDWR);
  os::release_descriptor(connection);
}

// A packet of nothing would look like an end.
void answer_request(int connection, std::string_view refusal) {
  (void)send_text(connection,
                  refusal.empty() ? std::string("+") : fmt::format("-{}", refusal.substr(0, kMostText - 1)));
}

Result<int> ask_to_record(std::int32_t process, const std::string& folder) {
  constexpr char kWhat[] = "cannot record a process";
  const std::string subject = fmt::format("{}", process);
  auto made = new_socket(kWhat);
  if (!made) return made;
  const auto give_up = [&](ErrorCode code, std::string why, std::string remedy) {
    base::close_now(*made);
    return fail(code, kWhat, subject, std::move(why), std::move(remedy));
  };
  const Address address(process);
  if (connect(*made, address.get(), address.bytes) != 0) {
    return give_up(ErrorCode::kNotFound, "it does not page: all that it has fits into the budget",
                   "record the program from its start, as `farheap record -- PROGRAM`");
  }
  const auto who = other_end(*made);
  if (!who || who->pid != process) return give_up(ErrorCode::kPermission, "another process answers in its place", "");
  if (!may_ask(who)) return give_up(ErrorCode::kPermission, "it is another user's", "record as that user");
  (void)send_text(*made, std::string(kRequest) + folder);  // it may have answered and hung up already
  const auto answer = receive(*made, kPatience);
  if (!answer) return give_up(ErrorCode::kIo, "it ended, is stopped, or waits for its store", "try again");
  if (answer->front() != '+') return give_up(ErrorCode::kConflict, answer->substr(1), "");
  return made;
}

void end_request(int connection) {
  base::system_call(SYS_shutdown, connection, SHUT_WR);
  (void)receive(connection, kPatience);
  base::close_now(connection);
}

bool has_hung_up(int connection) {
  char byte = 0;
  const long got = base::system_call(SYS_recvfrom, connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT, nullptr, nullptr);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace farheap::profile
