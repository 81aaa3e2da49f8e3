// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/redis/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "os/own_descriptors.hpp"
#include "store/redis/names_of_hosts.hpp"

namespace farheap::store::redis {
namespace {

constexpr std::size_t kMostPieces = IOV_MAX;

timeval timeval_of(long milliseconds) { return {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}; }

// A server whose machine is gone sends no word of it.
void set_tcp(int file) {
  const int on = 1, idle_s = 60, interval_s = 10;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
}

constexpr char kTooLate[] = "it took longer than there was time for";

// errno, as connect() would give it.
bool wait_connected(int file, int timeout_ms, Deadline deadline) {
  // A program whose timer interrupts us again and again does not make it longer.
  const Deadline end = std::min(deadline, Deadline::in(std::chrono::milliseconds(timeout_ms)));
  pollfd one{.fd = file, .events = POLLOUT};
  int ready = 0;
  while ((ready = poll(&one, 1, end.left_ms(timeout_ms))) < 0 && errno == EINTR) {
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
  timeout_ms_ = timeout_ms;
  if (address.host.empty()) {
    sockaddr_un place{};
    place.sun_family = AF_UNIX;
    if (address.socket.size() >= sizeof place.sun_path) return why_ = "the path is too long for a socket", false;
    std::memcpy(place.sun_path, address.socket.c_str(), address.socket.size() + 1);
    return connect_to(&place, sizeof place, AF_UNIX);
  }
  std::vector<HostAddress> before;
  for (int round = 0; round < 2; ++round) {
    const auto patience = std::min<std::chrono::nanoseconds>(std::chrono::milliseconds(timeout_ms), deadline_.left());
    const auto found = addresses_of(address, patience, why_);
    if (found == before) break;
    for (const HostAddress& one : found) {
      if (!connect_to(&one.address, one.length, one.address.ss_family)) continue;
      if (tls) start_tls(std::move(tls), address.host);
      return true;
    }
    forget_addresses_of(address);  // they may have been told a moment ago
    before = found;
  }
  return false;
}

bool Socket::connect_to(const void* address, unsigned length, int family) {
  if (deadline_.has_passed()) return why_ = kTooLate, false;
  const int file = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return why_ = strerror(errno), false;
  file_ = os::keep_descriptor(file);
  os::keep_from_children(file_);  // they have connections of their own
  if (::connect(file_, static_cast<const sockaddr*>(address), length) != 0) {
    const bool under_way = errno == EINPROGRESS || errno == EINTR;
    if (!under_way || !wait_connected(file_, timeout_ms_, deadline_)) {
      give_up(errno == EAGAIN ? "too many wait to be let in" : strerror(errno));
      return false;
    }
  }
  limit_ms_ = 0;
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

// Waiting in recv() and send() themselves takes one system call, not two.
bool Socket::limit_wait() {
  const int limit_ms = deadline_.left_ms(timeout_ms_);
  if (limit_ms == 0) return errno = ETIME, false;
  if (limit_ms == limit_ms_) return true;
  const timeval limit = timeval_of(limit_ms);
  setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(file_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  limit_ms_ = limit_ms;
  return true;
}

ssize_t Socket::send_plain(std::span<iovec> pieces) {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = std::min(pieces.size(), kMostPieces);
  ssize_t sent = 0;
  do {
    if (!limit_wait()) return -1;
  } while ((sent = sendmsg(file_, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR);
  return sent;
}

bool Socket::send(std::span<iovec> pieces) {
  if (file_ < 0) return false;
  const auto failed = [&] {
    std::string why = strerror(errno);
    if (errno == EAGAIN) why = limit_ms_ < timeout_ms_ ? kTooLate : fmt::format("it took nothing for {} ms", limit_ms_);
    if (errno == ETIME) why = kTooLate;
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
  do {
    if ((flags & MSG_DONTWAIT) == 0 && !limit_wait()) return -1;
  } while ((got = recvmsg(file_, &message, flags)) < 0 && errno == EINTR);
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
  } else if (errno == ETIME) {
    give_up(kTooLate);
  } else if (errno != EAGAIN) {
    give_up(strerror(errno));
  } else if ((flags & MSG_DONTWAIT) == 0) {
    give_up(limit_ms_ < timeout_ms_ ? kTooLate : fmt::format("no answer in {} ms", limit_ms_));
  }
  return 0;
}

std::size_t Socket::receive(std::span<iovec> pieces) { return receive_by(pieces, 0); }
std::size_t Socket::receive_at_once(std::span<iovec> pieces) { return receive_by(pieces, MSG_DONTWAIT); }

}  // namespace farheap::store::redis
