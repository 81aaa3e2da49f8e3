// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A beat now and then for as long as a store is open, also while its program is idle: by it a server knows that a
// scratch store is in use. One thread of the runtime's (os/runtime_threads.hpp) beats for all stores of a process.
// Where there is none to be had, nobody beats, and what renews a store's entry is its calls.
//
// Thread-safety: any thread; also after a fork while another thread was inside.
#pragma once

#include <chrono>
#include <functional>

namespace farheap::store::redis {

class Heart {
 public:
  Heart() = default;
  ~Heart() { stop(); }
  Heart(const Heart&) = delete;
  Heart& operator=(const Heart&) = delete;

  // The first beat comes after `every`. It may take a while, and must not start or stop a heart.
  void start(std::chrono::nanoseconds every, std::function<void()> beat);
  // In a forked child, where no thread is: one again. Elsewhere nothing. The runtime starts no other thread meanwhile.
  void renew();
  // No beat is under way afterwards, and none will be.
  void stop();

 private:
  friend struct Hearts;
  std::chrono::nanoseconds every_{};
  std::function<void()> beat_;  // empty: stopped
  std::int64_t next_ns_ = 0;    // on the boot clock
};

}  // namespace farheap::store::redis
