// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The serving end of one connection: workers that look for questions in the slots of its shared memory, have the
// engine answer them, and write the answers. There is one worker, and more while questions wait.
//
// Thread-safety: one thread at a time; the workers are its own.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "store/beside/protocol.hpp"
#include "store/spin.hpp"

namespace farheap::engines {

class ServedConnection {
 public:
  // Takes the socket over.
  explicit ServedConnection(int socket) : socket_(socket) {}
  // Waits for what is being answered.
  ~ServedConnection();
  ServedConnection(const ServedConnection&) = delete;
  ServedConnection& operator=(const ServedConnection&) = delete;

  [[nodiscard]] int socket() const { return socket_; }

  // Maps the client's memory (the file is closed) and begins to answer from `engine`, which outlives this.
  [[nodiscard]] Status attach(int file, std::size_t data_bytes, Store& engine);
  // Takes the eventfd over; it is written to when a slot that names `number` is answered.
  [[nodiscard]] Status notify(int event, std::uint64_t number);
  // No more questions are begun.
  void stop();

  // Its client leaves, and waits until the descriptor, which is taken over, is closed. It is not for this connection to
  // close it when it ends: the store may end after it.
  void leaving(int waiting);
  // -1: none, or already taken.
  [[nodiscard]] int take_waiting();
  [[nodiscard]] bool is_overdue(std::int64_t now_ns) const { return waiting_ >= 0 && now_ns > overdue_ns_; }
  [[nodiscard]] bool is_leaving() const { return waiting_ >= 0; }

 private:
  static constexpr std::size_t kMostWorkers = 8;

  void work();
  void start_worker() FARHEAP_REQUIRES(starting_);
  [[nodiscard]] std::optional<std::uint32_t> next_question();
  [[nodiscard]] std::optional<std::uint32_t> claim();
  [[nodiscard]] bool is_any_asked() const;
  void call_another();
  void answer(std::uint32_t index);

  int socket_;
  int waiting_ = -1;
  std::int64_t overdue_ns_ = 0;
  store::beside::SharedMemory memory_;
  Store* engine_ = nullptr;
  std::array<std::atomic<int>, store::beside::kMostNotified> events_ = {};  // a descriptor plus 1
  std::atomic<bool> stopping_{false};
  store::Spin spin_;
  std::atomic<std::int64_t> idle_since_ns_{0};
  base::Mutex starting_;
  std::vector<std::thread> workers_ FARHEAP_GUARDED_BY(starting_);
};

}  // namespace farheap::engines
