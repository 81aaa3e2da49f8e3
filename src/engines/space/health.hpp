// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the store behind a connection is still the one that was opened, and has all that it had; and the thread that
// gives a scratch store's signs of life.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <farheap/result.hpp>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "engines/grpc/channel.hpp"

namespace farheap::engines {

class ServerHealth {
 public:
  // `watch`: nullptr where nothing has to be verified.
  ServerHealth(std::string subject, ConnectionWatch* watch) : subject_(std::move(subject)), watch_(watch) {}

  // Before the answers of a call are believed. `verify` looks at the store's identity, after every break of the
  // connection once; it says what it finds wrong through lost().
  [[nodiscard]] Status check(const std::function<Status()>& verify);
  // From now on every call fails with this, or with what was said first.
  Status lost(std::string what);
  [[nodiscard]] bool is_lost() const { return is_lost_; }

 private:
  std::string subject_;
  ConnectionWatch* watch_;
  base::Mutex verify_mutex_;  // held by the one who verifies, before the next
  base::Mutex lost_mutex_;
  std::string lost_ FARHEAP_GUARDED_BY(lost_mutex_);  // empty while all is well
  std::atomic<bool> is_lost_{false};
};

class Heartbeat {
 public:
  ~Heartbeat() { stop(); }
  void start(std::chrono::milliseconds every, std::function<void()> beat);
  void stop();

 private:
  base::Mutex mutex_;  // for the wait alone; held while it beats
  std::condition_variable_any now_;
  std::jthread thread_;
};

}  // namespace farheap::engines
