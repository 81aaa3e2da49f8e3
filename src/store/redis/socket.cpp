// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "os/own_descriptors.hpp"
#include "store/fork_lock.hpp"

namespace farheap::store::redis {
namespace {

constexpr std::size_t kMostPieces = IOV_MAX;

struct Found {
  sockaddr_storage address{};
  socklen_t length = 0;
};

// Kept for good: where a reconnection happens, a program's own malloc() may hold its locks.
std::vector<Found> look_up(const Address& address, std::string& why) {
  static std::map<std::string, std::vector<Found>> known;
  static ForkLock lock;
  std::lock_guard guard(lock);
  auto& found = known[address.text()];
  if (!found.empty()) return found;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (error != 0) {
    why = gai_strerror(error);
    return {};
  }
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    Found here{.length = one->ai_addrlen};
    std::memcpy(&here.address, one->ai_addr, one->ai_addrlen);
    found.push_back(here);
  }
  freeaddrinfo(list);
  return found;
}

timeval timeval_of(long milliseconds) { return {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}; }

// A server whose machine is gone sends no word of it.
void set_tcp(int file) {
  const int on = 1, idle_s = 60, interval_s = 10;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
}

// errno, as connect() would give it.
bool wait_connected(int file, int timeout_ms) {
  pollfd one{.fd = file, .events = POLLOUT};
  int ready = 0;
  while ((ready = poll(&one, 1, timeout_ms)) < 0 && errno == EINTR) {
  }
  if (ready == 0) errno = ETIMEDOUT;
  if (ready <= 0) return false;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0;
}

}  // namespace

bool Socket::connect(const Address& address, int timeout_ms, std::shared_ptr<const TlsSettings> tls) {
  close();
  why_.clear();
  if (address.host.empty()) {
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    if (address.socket.size() >= sizeof place.sun_path) return why_ = "the path is too long for a socket", false;
    std::memcpy(place.sun_path, address.socket.c_str(), address.socket.size() + 1);
    return connect_to(&place, sizeof place, AF_UNIX, timeout_ms);
  }
  for (const Found& one : look_up(address, why_)) {
    if (!connect_to(&one.address, one.length, one.address.ss_family, timeout_ms)) continue;
    if (tls) start_tls(std::move(tls), address.host);
    return true;
  }
  return false;
}

bool Socket::connect_to(const void* address, unsigned length, int family, int timeout_ms) {
  const int file = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return why_ = strerror(errno), false;
  file_ = os::keep_descriptor(file);
  os::keep_from_children(file_);  // they have connections of their own
  timeout_ms_ = timeout_ms;
  if (::connect(file_, static_cast<const sockaddr*>(address), length) != 0) {
    const bool under_way = errno == EINPROGRESS || errno == EINTR;
    if (!under_way || !wait_connected(file_, timeout_ms)) {
      give_up(errno == EAGAIN ? "too many wait to be let in" : strerror(errno));
      return false;
    }
  }
  // Waiting in recv() and send() themselves takes one system call, not two.
  const timeval limit = timeval_of(timeout_ms);
  setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(file_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int flags = fcntl(file_, F_GETFL);
  fcntl(file_, F_SETFL, flags & ~O_NONBLOCK);
  if (family != AF_UNIX) set_tcp(file_);
  return true;
}

void Socket::start_tls(std::shared_ptr<const TlsSettings> tls, const std::string& host) {
  tls_ = std::make_unique<TlsSession>(std::move(tls), host,
                                      TlsTransport{.send =
                                                       [this](const void* bytes, std::size_t count) {
                                                         iovec piece{const_cast<void*>(bytes), count};
                                                         return send_plain({&piece, 1});
                                                       },
                                                   .receive =
                                                       [this](void* room, std::size_t count) {
                                                         iovec piece{room, count};
                                                         return receive_plain({&piece, 1}, flags_);
                                                       }});
}

// Without a word of TLS': a forked child that lets go of its parent's connection must not end it.
void Socket::close() {
  tls_.reset();
  os::release_descriptor(file_);
  file_ = -1;
}

void Socket::give_up(std::string why) {
  why_ = std::move(why);
  close();
}

ssize_t Socket::send_plain(std::span<iovec> pieces) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = std::min(pieces.size(), kMostPieces);
  ssize_t sent = 0;
  while ((sent = sendmsg(file_, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent;
}

bool Socket::send(std::span<iovec> pieces) {
  if (file_ < 0) return false;
  const auto failed = [&] {
    std::string why = errno == EAGAIN ? fmt::format("it took nothing for {} ms", timeout_ms_) : strerror(errno);
    if (tls_ && !tls_->why().empty()) why = tls_->why();
    give_up(std::move(why));
    return false;
  };
  if (tls_) {
    flags_ = 0;
    return tls_->send(pieces) ? true : failed();
  }
  while (!pieces.empty()) {
    const ssize_t sent = send_plain(pieces);
    if (sent < 0) return failed();
    auto left = static_cast<std::size_t>(sent);
    while (!pieces.empty() && left >= pieces.front().iov_len) {
      left -= pieces.front().iov_len;
      pieces = pieces.subspan(1);
    }
    if (left == 0) continue;
    pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + left;
    pieces.front().iov_len -= left;
  }
  return true;
}

ssize_t Socket::receive_plain(std::span<iovec> pieces, int flags) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  ssize_t got = 0;
  while ((got = recvmsg(file_, &message, flags)) < 0 && errno == EINTR) {
  }
  if (got == 0) errno = 0;
  return got;
}

std::size_t Socket::receive_by(std::span<iovec> pieces, int flags) {
  if (file_ < 0) return 0;
  flags_ = flags;
  errno = 0;
  const ssize_t got = tls_ ? static_cast<ssize_t>(tls_->receive(pieces)) : receive_plain(pieces, flags);
  if (got > 0) return static_cast<std::size_t>(got);
  if (tls_ && !tls_->why().empty()) {
    give_up(tls_->why());
  } else if (errno == 0) {
    give_up("it closed the connection");
  } else if (errno != EAGAIN) {
    give_up(strerror(errno));
  } else if ((flags & MSG_DONTWAIT) == 0) {
    give_up(fmt::format("no answer in {} ms", timeout_ms_));
  }
  return 0;
}

std::size_t Socket::receive(std::span<iovec> pieces) { return receive_by(pieces, 0); }
std::size_t Socket::receive_at_once(std::span<iovec> pieces) { return receive_by(pieces, MSG_DONTWAIT); }

}  // namespace farheap::store::redis
