// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "keep_awake.hpp"

#include <sched.h>
#include <unistd.h>

#include "base/log.hpp"
#include "quiet_thread.hpp"

namespace farheap::tool {

KeepAwake::KeepAwake(base::Pulse& pulse) : pulse_(pulse) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) return;  // the only one never sleeps while faults beat
  std::error_code why;
  thread_ = start_quietly(
      [this] {
        const sched_param none{};
        if (sched_setscheduler(0, SCHED_IDLE, &none) == 0) pulse_.keep_awake();
      },
      why);
  if (why) base::log(base::LogLevel::kInfo, "no thread to keep a processor awake: {}", why.message());
}

KeepAwake::~KeepAwake() {
  pulse_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace farheap::tool
