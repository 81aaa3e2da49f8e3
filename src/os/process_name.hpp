// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process by a name that no other process ever has: its number alone is given to another one after its end, and means
// another process in another namespace.
//
// Thread-safety: plain values and functions.
#pragma once

#include <cstdint>

namespace farheap::os {

// A part that is 0 was not to be found out, or (of a name that was written down) is not known: then nothing is said of
// that process that needs the part.
struct ProcessName {
  std::uint64_t boot = 0;            // a hash of the boot's random number: the machine, since it was started
  std::uint64_t pid_namespace = 0;   // which numbers are meant
  std::uint64_t time_namespace = 0;  // by which clock `start` is told
  std::uint64_t pid = 0;
  std::uint64_t start = 0;  // when it began, in clock ticks since the boot as its time namespace tells it
  friend bool operator==(const ProcessName&, const ProcessName&) = default;
};

// In a forked child: the child's. Without a /proc of its own pid namespace: with zeros, which is 'elsewhere' to all.
[[nodiscard]] ProcessName name_of_this_process();

enum class Presence {
  kHere,  // it runs, or is stopped
  // It has ended, and that is proven: the kernel knows no process of its number, or says of the one that has it that it
  // began at another time, or that the last of its threads has ended.
  kGone,
  // All else: on another machine; where its number or its start means nothing here; or hidden (hidepid=). Somebody who
  // may see it, or time, has to tell.
  kElsewhere,
};
[[nodiscard]] Presence presence_of(const ProcessName& name);

}  // namespace farheap::os
