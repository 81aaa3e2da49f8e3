// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory control groups, version 1 and 2: what limits this process, what it uses as the kernel counts it, and
// groups of our own for benchmarks and tests.
//
// Thread-safety: any thread; a MemoryGroup is a plain value that names a folder.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <farheap/result.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace farheap::os {

// Where a process's memory group is in the file system.
struct GroupPlace {
  int version = 0;     // 1 or 2
  std::string mount;   // "/sys/fs/cgroup/memory": no group above it can be seen
  std::string folder;  // "/sys/fs/cgroup/memory/user/one"
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};

// From the texts of /proc/PID/mountinfo and /proc/PID/cgroup. Where version 1 has the memory controller (hybrid
// set-ups), that is the one. Absent when no memory controller is mounted.
[[nodiscard]] std::optional<GroupPlace> find_memory_group(std::string_view mountinfo, std::string_view cgroup);

// The value behind `key` in a file of "key value" lines (memory.stat, memory.events).
[[nodiscard]] std::optional<std::uint64_t> find_counter(std::string_view text, std::string_view key);

class MemoryGroup {
 public:
  explicit MemoryGroup(GroupPlace place) : place_(std::move(place)) {}

  // The group this process is in. kUnavailable when there is none.
  [[nodiscard]] static Result<MemoryGroup> of_this_process();

  // Makes a group below this process's own; where version 2 forbids that (a group with processes has no groups
  // below it), below the mount. It exists until remove(). Needs root, or a delegated subtree.
  [[nodiscard]] static Result<MemoryGroup> create(const std::string& name);

  [[nodiscard]] const GroupPlace& place() const { return place_; }

  // The lowest limit of this group and those above it; absent when there is none.
  [[nodiscard]] std::optional<std::uint64_t> limit_bytes() const;
  // Anonymous memory of the group and those below it.
  [[nodiscard]] Result<std::uint64_t> anonymous_bytes() const;
  // All that is charged: anonymous, page cache, kernel memory. The peak needs Linux 5.19 under version 2.
  [[nodiscard]] Result<std::uint64_t> charged_bytes() const;
  [[nodiscard]] Result<std::uint64_t> peak_bytes() const;
  // Processes the kernel killed here for want of memory.
  [[nodiscard]] Result<std::uint64_t> oom_kills() const;

  [[nodiscard]] Status set_limit(std::uint64_t bytes) const;
  [[nodiscard]] Status add_process(pid_t pid) const;
  // Requires: no process is in it any more (one that just ended may take a moment; this waits for it).
  [[nodiscard]] Status remove() const;

 private:
  [[nodiscard]] std::string file(std::string_view version_1, std::string_view version_2) const;
  [[nodiscard]] Result<std::uint64_t> number(const std::string& path) const;

  GroupPlace place_;
};

// The budget when nobody names one: the control group's limit or the machine's memory, whichever is less, less
// slack for what the budget does not cover (page cache, kernel memory, stacks).
[[nodiscard]] std::uint64_t automatic_budget();
// Slack of a limit: a sixteenth of it, at least 16 MiB (and no more than half of it), at most 1 GiB.
[[nodiscard]] std::uint64_t budget_below(std::uint64_t limit_bytes);

}  // namespace farheap::os
