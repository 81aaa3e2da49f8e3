// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "keep_awake.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "quiet_thread.hpp"

namespace farheap::tool {

namespace {

constexpr int kNoRequest = 2'000'000'000;  // us; the kernel's own default
constexpr int kPauses = 64;                // between two looks at the clock
// Asking wakes all idle processors once: not for every pause of a program.
constexpr std::chrono::milliseconds kLook{1}, kRest{5};

}  // namespace

LatencyRequest::LatencyRequest(const char* device) : device_(open(device, O_WRONLY | O_CLOEXEC)) {}

LatencyRequest::~LatencyRequest() {
  if (is_open()) close(device_);
}

void LatencyRequest::release() { write(kNoRequest); }

void LatencyRequest::write(int microseconds) const {
  if (pwrite(device_, &microseconds, sizeof microseconds, 0) == sizeof microseconds) return;
  base::log(base::LogLevel::kInfo, "processors are not kept awake: {}", std::strerror(errno));
}

KeepAwake::KeepAwake(base::Pulse& pulse, const char* device) : pulse_(pulse), device_(device) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) return;  // the only one never sleeps while faults beat
  std::error_code why;
  thread_ = start_quietly([this] { keep(); }, why);
  if (why) base::log(base::LogLevel::kInfo, "no thread to keep processors awake: {}", why.message());
}

void KeepAwake::keep() {
  const sched_param none{};
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return;
  LatencyRequest request(sysconf(_SC_NPROCESSORS_ONLN) <= kMostPolling ? device_ : "");
  while (pulse_.wait_for_beats(stopped_)) {
    if (!request.is_open()) {
      while (beats()) {
        for (int i = 0; i < kPauses; ++i) __builtin_ia32_pause();
      }
      continue;
    }
    request.hold();
    while (beats(kRest)) base::sleep_for(kLook);
    request.release();
  }
}

bool KeepAwake::beats(std::chrono::nanoseconds rest) const { return !stopped_.load() && pulse_.beats(rest); }

KeepAwake::~KeepAwake() {
  stopped_.store(true);
  pulse_.wake();
  if (thread_.joinable()) thread_.join();
}

}  // namespace farheap::tool
