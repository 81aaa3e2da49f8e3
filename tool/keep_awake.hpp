// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps processors awake while the faults of a run beat (base/pulse.hpp). On small machines, and where we may, by a
// request to the kernel's power management that idle processors answer at once (PM QoS, /dev/cpu_dma_latency; Linux
// Documentation/power/pm_qos_interface.rst): they poll in the idle loop, and who wakes a thread there needs no
// interrupt. Otherwise by a thread that spins on a processor that nobody else wants, at the lowest priority that Linux
// has (SCHED_IDLE): in the tool's own address space, so that it takes no part in the program's TLB flushes.
#pragma once

#include <atomic>
#include <thread>

#include "base/pulse.hpp"

namespace farheap::tool {

// Nothing is asked before hold(). The kernel forgets the request with the process.
class LatencyRequest {
 public:
  explicit LatencyRequest(const char* device);
  ~LatencyRequest();
  LatencyRequest(const LatencyRequest&) = delete;
  LatencyRequest& operator=(const LatencyRequest&) = delete;
  [[nodiscard]] bool is_open() const { return device_ >= 0; }
  void hold() { write(0); }
  void release();

 private:
  void write(int microseconds) const;
  int device_;
};

class KeepAwake {
 public:
  static constexpr const char* kDevice = "/dev/cpu_dma_latency";
  // The request holds for all processors: where there are more, too many would poll for the two that matter.
  static constexpr long kMostPolling = 8;

  // The pulse and the string outlive this object.
  explicit KeepAwake(base::Pulse& pulse, const char* device = kDevice);
  ~KeepAwake();
  KeepAwake(const KeepAwake&) = delete;
  KeepAwake& operator=(const KeepAwake&) = delete;

 private:
  void keep();
  [[nodiscard]] bool beats(std::chrono::nanoseconds rest = base::Pulse::kBeat) const;
  base::Pulse& pulse_;
  std::atomic<bool> stopped_{false};  // not in the pulse, where processes of the run could take it back
  const char* device_;
  std::thread thread_;
};

}  // namespace farheap::tool
