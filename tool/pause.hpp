// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The time between two looks, for verbs that look on until somebody has seen enough: Ctrl-C, SIGTERM or a terminal that
// goes away ends it early, and for good. Signals that whoever started the tool had ignored (nohup) end nothing.
//
// Thread-safety: one thread; threads that are started while it lives get no such signal, either.
#pragma once

#include <csignal>
#include <ctime>

namespace farheap::tool {

class Pause {
 public:
  explicit Pause(double seconds);
  // False: that is enough.
  [[nodiscard]] bool wait() const;

 private:
  timespec time_;
  sigset_t ending_{};
};

}  // namespace farheap::tool
