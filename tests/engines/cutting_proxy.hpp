// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A TCP proxy on 127.0.0.1 that loses replies: when told to, it passes on what a client sends, lets some bytes of the
// answer through, and cuts the connection.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace farheap::test {

class CuttingProxy {
 public:
  explicit CuttingProxy(std::uint16_t server_port);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // The next connection that would bring more bytes of answers than these, counted from now on, is cut; once.
  void cut_after(std::int64_t answer_bytes) { left_ = answer_bytes; }
  [[nodiscard]] int cuts() const { return cuts_; }

 private:
  static constexpr std::int64_t kAll = std::int64_t{1} << 60;
  void accept_all();
  void pass(int client);

  std::uint16_t server_port_;
  std::uint16_t port_ = 0;
  int listening_ = -1;
  std::atomic<std::int64_t> left_{kAll};
  std::atomic<int> cuts_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> passing_;
  std::thread accepting_;
};

}  // namespace farheap::test
