// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/store/reply_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace farheap::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int connect_to(std::uint16_t port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(port);
  const int on = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return file;
  close(file);
  return -1;
}

bool send_all(int file, const char* bytes, ssize_t count) {
  while (count > 0) {
    const ssize_t sent = send(file, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent, count -= sent;
  }
  return true;
}

}  // namespace

ReplyProxy::ReplyProxy(std::uint16_t server) : server_(server) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t length = sizeof address;
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0 || pipe(wake_) != 0) {
    throw std::runtime_error("no socket for a proxy");
  }
  port_ = ntohs(address.sin_port);
  server_thread_ = std::thread([this] { serve(); });
}

ReplyProxy::~ReplyProxy() {
  release();
  close(wake_[1]);
  server_thread_.join();
  for (auto& carrier : carriers_) carrier.join();
  close(wake_[0]);
  close(listener_);
}

void ReplyProxy::lose(unsigned skipped, Loss loss, std::function<void()> meanwhile) {
  std::lock_guard guard(mutex_);
  is_armed_ = true, left_ = skipped, loss_ = loss, meanwhile_ = std::move(meanwhile);
}

bool ReplyProxy::is_to_be_lost(Loss& loss) {
  std::function<void()> meanwhile;
  {
    std::lock_guard guard(mutex_);
    if (!is_armed_ || left_-- != 0) return false;
    is_armed_ = false;
    loss = loss_;
    meanwhile = std::move(meanwhile_);
  }
  if (meanwhile) meanwhile();
  losses_.fetch_add(1);
  return true;
}

void ReplyProxy::hold() {
  std::lock_guard guard(mutex_);
  is_holding_ = true;
}

void ReplyProxy::release() {
  std::lock_guard guard(mutex_);
  is_holding_ = is_held_ = false;
  released_.notify_all();
}

void ReplyProxy::wait_if_held() {
  std::unique_lock guard(mutex_);
  if (!is_holding_) return;
  is_holding_ = false, is_held_ = true;
  released_.wait(guard, [&] { return !is_held_; });
}

void ReplyProxy::serve() {
  for (;;) {
    pollfd waiting[] = {{.fd = listener_, .events = POLLIN}, {.fd = wake_[0], .events = POLLIN}};
    if (poll(waiting, 2, -1) < 0 || waiting[1].revents != 0) return;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = client < 0 ? -1 : connect_to(server_);
    if (server < 0) {
      close(client);
      continue;
    }
    carriers_.emplace_back([=, this] { carry(client, server); });
  }
}

void ReplyProxy::carry(int client, int server) {
  std::vector<char> buffer(1 << 20);
  bool is_up = true, is_swallowing = false;
  while (is_up) {
    pollfd waiting[] = {
        {.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}, {.fd = wake_[0], .events = POLLIN}};
    if (poll(waiting, 3, -1) < 0 || waiting[2].revents != 0) break;
    if (waiting[0].revents != 0) {
      const ssize_t got = recv(client, buffer.data(), buffer.size(), 0);
      if (got > 0) wait_if_held();
      is_up = got > 0 && send_all(server, buffer.data(), got);
    }
    if (is_up && waiting[1].revents != 0) {
      const ssize_t got = recv(server, buffer.data(), buffer.size(), 0);
      Loss loss{};
      if (got <= 0) break;
      if (is_to_be_lost(loss)) {
        if (loss == Loss::kCut) break;
        if (loss == Loss::kGarble) {
          buffer[losses_.load() * 7 % 40 % static_cast<std::size_t>(got)] ^=
              static_cast<char>(1 + losses_.load() % 127);
        } else {
          is_swallowing = true;  // what follows would answer another question
        }
      }
      is_up = is_swallowing || send_all(client, buffer.data(), got);
    }
  }
  close(client);
  close(server);
}

}  // namespace farheap::test
