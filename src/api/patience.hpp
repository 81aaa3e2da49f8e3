// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long somebody who opens a heap waits for whoever has it: in short pauses, whose number is bounded. They are
// counted and no clock is read, so that a program whose clock stands still does not wait for ever.
//
// Thread-safety: plain values; the usual wait is an atomic.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

namespace farheap::api {

class Patience {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // A holder that is being taken down lets go of it by itself, and nobody can hurry it: that is waited for apart.
  static constexpr Milliseconds kForDying{10'000};

  explicit Patience(Milliseconds wait) : left_(std::max(wait, Milliseconds(0))) {}

  // The next pause; nothing when it is over.
  [[nodiscard]] std::optional<Milliseconds> next(bool holder_is_dying) {
    Milliseconds& left = holder_is_dying && left_for_dying_.count() > 0 ? left_for_dying_ : left_;
    if (left.count() == 0) return std::nullopt;
    const Milliseconds pause = std::min(left, pause_);
    left -= pause;
    pause_ = std::min(pause_ * 2, kLongest);
    return pause;
  }

  // Where nobody says how long: a second.
  [[nodiscard]] static Milliseconds usual() { return Milliseconds(usual_ms().load(std::memory_order_relaxed)); }
  static void set_usual(Milliseconds wait) { usual_ms().store(wait.count(), std::memory_order_relaxed); }

 private:
  static constexpr Milliseconds kLongest{50};

  static std::atomic<Milliseconds::rep>& usual_ms() {
    static std::atomic<Milliseconds::rep> wait{1000};
    return wait;
  }

  Milliseconds left_;
  Milliseconds left_for_dying_ = kForDying;
  Milliseconds pause_{1};
};

}  // namespace farheap::api
