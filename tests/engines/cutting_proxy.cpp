// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/engines/cutting_proxy.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/store/loopback.hpp"

namespace farheap::test {

CuttingProxy::CuttingProxy(std::uint16_t server_port) : server_port_(server_port) {
  listening_ = listen_on_any(port_);
  accepting_ = std::thread([this] { accept_all(); });
}

CuttingProxy::~CuttingProxy() {
  stopping_ = true;
  accepting_.join();
  for (auto& thread : passing_) thread.join();
  close(listening_);
}

void CuttingProxy::accept_all() {
  while (!stopping_) {
    pollfd waiting{.fd = listening_, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 20) <= 0) continue;
    const int client = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) passing_.emplace_back([this, client] { pass(client); });
  }
}

void CuttingProxy::pass(int client) {
  const int server = connect_to(server_port_);
  const int at_once = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  bool open = server >= 0;
  char buffer[16384];
  while (open && !stopping_) {
    pollfd both[] = {{.fd = client, .events = POLLIN, .revents = 0}, {.fd = server, .events = POLLIN, .revents = 0}};
    if (poll(both, 2, 20) <= 0) continue;
    if (both[0].revents != 0) {
      const auto got = recv(client, buffer, sizeof buffer, 0);
      open = got > 0 && send_all(server, buffer, static_cast<std::size_t>(got));
    }
    if (open && both[1].revents != 0) {
      const auto got = recv(server, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      const auto left = left_.fetch_sub(got);
      if (left < got) {
        if (left > 0) (void)send_all(client, buffer, static_cast<std::size_t>(left));
        ++cuts_;
        left_ = kAll;  // once
        break;
      }
      open = send_all(client, buffer, static_cast<std::size_t>(got));
    }
  }
  close(client);
  if (server >= 0) close(server);
}

}  // namespace farheap::test
