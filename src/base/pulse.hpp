// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The beat of the faults of a run. While faults follow each other closely, the program and the handler wake each
// other tens of thousands of times a second, and each time one of the two processors has just gone to sleep: in a
// virtual machine that adds 20 to 30 us to a fault. A keeper, a thread of the lowest priority in the `farheap run`
// process (its own address space, so that it takes no part in the program's TLB flushes), keeps one processor from
// sleeping for as long as faults beat, as a kernel with halt polling does.
//
// Lives in the run page: shared by processes. Thread-safety: beat() from any thread of any process; one keeper.
#pragma once

#include <atomic>
#include <cstdint>

namespace farheap::base {

class Pulse {
 public:
  // A fault has arrived; `now_ns` on the monotonic clock. Wakes the keeper when several followed each other closely.
  void beat(std::int64_t now_ns);
  // The keeper's whole life: spins while faults beat, sleeps while they do not, returns after stop().
  void keep_awake();
  void stop();
  [[nodiscard]] bool keeper_sleeps() const { return sleeping_.load() != 0; }

 private:
  std::atomic<std::int64_t> last_ns_{0};
  std::atomic<std::uint32_t> in_a_row_{0};
  std::atomic<std::uint32_t> sleeping_{0};  // a futex
  std::atomic<bool> stopped_{false};
};

}  // namespace farheap::base
