// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process by a name that no other process ever has: its number alone is given to another one after its end.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>

namespace farheap::os {

struct ProcessName {
  std::uint64_t boot = 0;           // a hash of the boot's random number: the machine, since it was started
  std::uint64_t pid_namespace = 0;  // which numbers are meant
  std::uint64_t pid = 0;
  std::uint64_t start = 0;  // when it began, in clock ticks since the boot
  friend bool operator==(const ProcessName&, const ProcessName&) = default;
};

// In a forked child: the child's.
[[nodiscard]] Result<ProcessName> name_of_this_process();

enum class Presence {
  kHere,       // it runs, or is stopped
  kGone,       // it has ended
  kElsewhere,  // on another machine, or where its number means nothing here
};
[[nodiscard]] Presence presence_of(const ProcessName& name);

}  // namespace farheap::os
