// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/store/reply_proxy.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "tests/store/loopback.hpp"

namespace farheap::test {

ReplyProxy::ReplyProxy(std::uint16_t server) : server_(server) {
  listener_ = listen_on_any(port_);
  if (pipe(wake_) != 0) throw std::runtime_error("no pipe for a proxy");
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

void ReplyProxy::flood(unsigned skipped, Flood flood) {
  std::lock_guard guard(mutex_);
  is_armed_ = true, left_ = skipped, loss_ = Loss::kFlood, meanwhile_ = {}, flood_ = std::move(flood);
}

// The pause is a wait for the client to hang up.
void ReplyProxy::pour(int client) {
  if (!send_all(client, flood_.start.data(), flood_.start.size())) return;
  for (;;) {
    pollfd waiting[] = {{.fd = client, .events = POLLRDHUP}, {.fd = wake_[0], .events = POLLIN}};
    if (poll(waiting, 2, static_cast<int>(flood_.pause.count())) != 0) return;
    if (!send_all(client, flood_.again.data(), flood_.again.size())) return;
  }
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
      is_up = got > 0 && send_all(server, buffer.data(), static_cast<std::size_t>(got));
    }
    if (is_up && waiting[1].revents != 0) {
      const ssize_t got = recv(server, buffer.data(), buffer.size(), 0);
      Loss loss{};
      if (got <= 0) break;
      if (is_to_be_lost(loss)) {
        if (loss == Loss::kFlood) pour(client);
        if (loss == Loss::kCut || loss == Loss::kFlood) break;
        if (loss == Loss::kGarble) {
          buffer[losses_.load() * 7 % 40 % static_cast<std::size_t>(got)] ^=
              static_cast<char>(1 + losses_.load() % 127);
        } else {
          is_swallowing = true;  // what follows would answer another question
        }
      }
      is_up = is_swallowing || send_all(client, buffer.data(), static_cast<std::size_t>(got));
    }
  }
  close(client);
  close(server);
}

}  // namespace farheap::test
