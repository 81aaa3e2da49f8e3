// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/store/loopback.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace farheap::test {
namespace {

// The port it was given; 0: it could not be bound.
std::uint16_t bind_to_any(int socket) {
  auto address = loopback(0);
  socklen_t length = sizeof address;
  const bool known = bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  return known ? ntohs(address.sin_port) : 0;
}

}  // namespace

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto port = bind_to_any(socket);
  close(socket);
  if (port == 0) throw std::runtime_error("no free port on 127.0.0.1");
  return port;
}

int connect_to(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(port);
  const int at_once = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  close(socket);
  return -1;
}

int listen_on_any(std::uint16_t& port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  port = bind_to_any(socket);
  if (port == 0 || listen(socket, 64) != 0) throw std::runtime_error("cannot listen on 127.0.0.1");
  return socket;
}

bool send_all(int socket, const char* bytes, std::size_t count) {
  while (count > 0) {
    const auto sent = send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent, count -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace farheap::test
