// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "keep_awake.hpp"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <system_error>

#include "base/log.hpp"

namespace farheap::tool {

KeepAwake::KeepAwake(base::Pulse& pulse) : pulse_(pulse) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) return;  // the only one never sleeps while faults beat
  sigset_t all, before;
  sigfillset(&all);  // the signals of the run are the main thread's
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] {
      const sched_param none{};
      if (sched_setscheduler(0, SCHED_IDLE, &none) == 0) pulse_.keep_awake();
    });
  } catch (const std::system_error& error) {
    base::log(base::LogLevel::kInfo, "no thread to keep a processor awake: {}", error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

KeepAwake::~KeepAwake() {
  pulse_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace farheap::tool
