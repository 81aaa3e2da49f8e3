// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stands between a client and a server of 127.0.0.1, and loses an answer on demand: the connection is cut, or the
// answer is swallowed and the connection stays, or a flood comes in its place.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace farheap::test {

class ReplyProxy {
 public:
  enum class Loss { kCut, kSwallow, kGarble, kFlood };
  // What a hostile server says: the start, and then the rest again and again until the client hangs up.
  struct Flood {
    std::string start, again;
    std::chrono::milliseconds pause{0};  // before each
  };

  explicit ReplyProxy(std::uint16_t server);
  ~ReplyProxy();
  ReplyProxy(const ReplyProxy&) = delete;
  ReplyProxy& operator=(const ReplyProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // The answer after `skipped` more ones is lost, once; `meanwhile` runs before anybody can know. An answer is what
  // comes from the server in one piece.
  void lose(unsigned skipped, Loss loss, std::function<void()> meanwhile = {});
  void flood(unsigned skipped, Flood flood);
  // The next request is kept back, on its connection, until release().
  void hold();
  void release();
  [[nodiscard]] unsigned losses() const { return losses_.load(); }

 private:
  void serve();
  void carry(int client, int server);
  [[nodiscard]] bool is_to_be_lost(Loss& loss);
  void wait_if_held();
  void pour(int client);

  std::uint16_t server_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  std::mutex mutex_;
  std::condition_variable released_;
  bool is_holding_ = false, is_held_ = false;
  bool is_armed_ = false;
  unsigned left_ = 0;
  Loss loss_ = Loss::kCut;
  std::function<void()> meanwhile_;
  Flood flood_;
  std::atomic<unsigned> losses_{0};
  std::vector<std::thread> carriers_;
  std::thread server_thread_;
};

}  // namespace farheap::test
