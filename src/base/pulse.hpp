// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The beat of the faults of a run. While faults follow each other closely, the program and the handler wake each
// other tens of thousands of times a second, and each time one of the two processors has just gone to sleep: in a
// virtual machine that adds 20 to 30 us to a fault. A keeper, a thread of `farheap run` (tool/keep_awake.hpp), sees to
// it that they stay awake for as long as faults beat.
//
// Lives in the run page: shared by processes, of which any may write what it likes there. At worst the keeper is awake
// when it need not be, or sleeps when it should not. Thread-safety: beat() from any thread of any process; one keeper.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace farheap::base {

class Pulse {
 public:
  // A fault has arrived; `now_ns` on the monotonic clock. Wakes the keeper when several followed each other closely.
  void beat(std::int64_t now_ns);
  // The keeper's: sleeps until faults follow each other closely. False when `stopped`, which is the keeper's own.
  [[nodiscard]] bool wait_for_beats(const std::atomic<bool>& stopped);
  // Whether the last fault was so lately that the next is to be expected.
  [[nodiscard]] bool beats(std::chrono::nanoseconds rest = kBeat) const;
  // Wakes the keeper, who has been told to stop.
  void wake();
  [[nodiscard]] bool keeper_sleeps() const { return sleeping_.load() != 0; }

  // As long as Linux's haltpoll would poll before it lets a processor sleep.
  static constexpr std::chrono::nanoseconds kBeat{200'000};

 private:
  std::atomic<std::int64_t> last_ns_{0};
  std::atomic<std::uint32_t> in_a_row_{0};
  std::atomic<std::uint32_t> sleeping_{0};  // a futex
};

}  // namespace farheap::base
