// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gate in front of books that somebody wants to see at rest. Any number of threads may be inside while it is open;
// one closes it, which waits for those inside and holds back all that come, however many.
//
// It is not recursive: who is inside and enters again waits for ever if somebody is closing. So it is passed around
// what belongs together and never around code of the program.
//
// Thread-safety: any thread; the one that opens need not be the one that closed. Around fork(): close it before, and
// nobody is inside who would be missing in the child; open it in both.
#pragma once

#include <atomic>
#include <cstdint>

namespace farheap::base {

class Gate {
 public:
  void enter() noexcept {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    do {
      if ((seen & kClosed) != 0) [[unlikely]]
        seen = wait_until_open();
    } while (!state_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire, std::memory_order_relaxed));
  }
  void leave() noexcept {
    if (state_.fetch_sub(1, std::memory_order_release) == (kClosed | 1)) [[unlikely]]
      wake_closer();
  }

  // Returns when nobody is inside. Where another one has closed it, waits for that one to open it first.
  // Requires: the caller is not inside.
  void close() noexcept;
  void open() noexcept;

 private:
  static constexpr std::uint32_t kClosed = std::uint32_t{1} << 31;  // the other bits: how many are inside

  [[nodiscard]] std::uint32_t wait_until_open() noexcept;
  void wake_closer() noexcept;

  std::atomic<std::uint32_t> state_{0};
  std::atomic<std::uint32_t> times_opened_{0};  // what those wait on who found it closed
};

// Inside while it lives. No gate, no wait.
class GatePass {
 public:
  explicit GatePass(Gate* gate) noexcept : gate_(gate) {
    if (gate_ != nullptr) gate_->enter();
  }
  ~GatePass() {
    if (gate_ != nullptr) gate_->leave();
  }
  GatePass(const GatePass&) = delete;
  GatePass& operator=(const GatePass&) = delete;

 private:
  Gate* gate_;
};

}  // namespace farheap::base
