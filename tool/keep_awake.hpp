// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The thread that keeps a processor awake while the faults of a run beat (base/pulse.hpp). Only for processors that
// nobody else wants: it runs at the lowest priority that Linux has (SCHED_IDLE), or not at all.
#pragma once

#include <thread>

#include "base/pulse.hpp"

namespace farheap::tool {

class KeepAwake {
 public:
  // The pulse outlives this object.
  explicit KeepAwake(base::Pulse& pulse);
  ~KeepAwake();
  KeepAwake(const KeepAwake&) = delete;
  KeepAwake& operator=(const KeepAwake&) = delete;

 private:
  base::Pulse& pulse_;
  std::thread thread_;
};

}  // namespace farheap::tool
