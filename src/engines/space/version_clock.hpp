// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions that a client makes itself and that order what it writes: 52 bits of microseconds since 1970, always higher
// than any version this handle has made or seen, then 12 bits by chance. Two versions are the same only if two handles
// that had not seen each other's drew the same 12 bits in the same microsecond.
//
// (A hybrid logical clock: Kulkarni et al., Logical Physical Clocks, OPODIS 2014, with the physical part as the unit.)
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <farheap/store.hpp>
#include <random>

namespace farheap::engines {

class VersionClock {
 public:
  static constexpr int kChanceBits = 12;

  [[nodiscard]] static std::uint64_t microseconds_of(Version version) { return version >> kChanceBits; }

  // By so much is the clock of the server, whose clock is everybody's, ahead of this machine's.
  void set_ahead(std::int64_t microseconds) { ahead_ = microseconds; }
  [[nodiscard]] std::uint64_t now() const {
    const auto here = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(here).count() + ahead_);
  }

  [[nodiscard]] Version next() { return first_of(1); }
  // `count` versions, the first of them: the others are 1 << kChanceBits apart.
  [[nodiscard]] Version first_of(std::uint64_t count) {
    thread_local std::minstd_rand chance{std::random_device{}()};
    const auto wanted = now();
    auto last = last_.load();
    std::uint64_t first = 0;
    do {
      first = wanted > last ? wanted : last + 1;
    } while (!last_.compare_exchange_weak(last, first + count - 1));
    return first << kChanceBits | (chance() & ((1u << kChanceBits) - 1));
  }
  void has_seen(Version version) {
    const auto seen = microseconds_of(version);
    auto last = last_.load();
    while (seen > last && !last_.compare_exchange_weak(last, seen)) {
    }
  }

 private:
  std::atomic<std::uint64_t> last_{0};
  std::atomic<std::int64_t> ahead_{0};
};

}  // namespace farheap::engines
