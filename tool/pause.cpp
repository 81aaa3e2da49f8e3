// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pause.hpp"

#include <cmath>
#include <initializer_list>

namespace farheap::tool {

Pause::Pause(double seconds) : time_{static_cast<time_t>(seconds), static_cast<long>(std::fmod(seconds, 1) * 1e9)} {
  sigemptyset(&ending_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&ending_, signal);
  }
  sigprocmask(SIG_BLOCK, &ending_, nullptr);
}

bool Pause::wait() const { return sigtimedwait(&ending_, nullptr, &time_) < 0; }

}  // namespace farheap::tool
