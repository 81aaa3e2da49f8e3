// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks for something for a short while before its caller goes to sleep for it: to wake a sleeper takes 5 us where its
// processor is awake, and up to 60 where it is not. Whoever else wants the processor gets it in between. It learns: as
// long as what it looks for takes longer, it gives up at once.
//
// Thread-safety: any thread.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace farheap::store {

class Spin {
 public:
  // True as soon as `is_there()` is.
  template <class IsThere>
  bool look(IsThere is_there) const {
    if (is_there()) return true;
    if (usual_ns_.load(std::memory_order_relaxed) > kWorthNs) return false;
    const std::int64_t end = now_ns() + kLookNs;
    do {
      for (int i = 0; i < 32; ++i) {
        if (is_there()) return true;
        __builtin_ia32_pause();
      }
      sched_yield();
    } while (now_ns() < end);
    return is_there();
  }

  // How long it took until it was there, looking and sleeping. One long pause is soon forgotten.
  void learn(std::int64_t took_ns) {
    took_ns = std::min(took_ns, 4 * kWorthNs);
    const std::int64_t usual = usual_ns_.load(std::memory_order_relaxed);
    usual_ns_.store(usual + (took_ns - usual) / 4, std::memory_order_relaxed);
  }

  [[nodiscard]] static std::int64_t now_ns() { return base::Clock::now().time_since_epoch().count(); }

 private:
  static constexpr std::int64_t kLookNs = 50'000;
  static constexpr std::int64_t kWorthNs = 100'000;
  std::atomic<std::int64_t> usual_ns_{0};
};

}  // namespace farheap::store
