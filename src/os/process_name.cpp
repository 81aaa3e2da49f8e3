// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/process_name.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <string>

#include "os/small_file.hpp"

namespace farheap::os {
namespace {

constexpr char kWhat[] = "cannot name this process";

// Field 22 of proc(5)'s /proc/PID/stat; what stands before the last ')' may hold anything. 0: there is no such process,
// or it has ended and only waits for its parent to ask.
std::uint64_t start_of(std::uint64_t pid) {
  const auto text = read_small_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return 0;
  std::size_t at = text->rfind(')');
  if (at == std::string::npos || at + 2 >= text->size()) return 0;
  const char state = (*text)[at + 2];
  if (state == 'Z' || state == 'X') return 0;
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text->find(' ', at + 1);
  std::uint64_t start = 0;
  if (at != std::string::npos) std::from_chars(text->data() + at + 1, text->data() + text->size(), start);
  return start;
}

std::uint64_t boot_hash() {
  const auto text = read_small_file("/proc/sys/kernel/random/boot_id");
  return text ? XXH3_64bits(text->data(), text->size()) : 0;
}

std::uint64_t own_pid_namespace() {
  struct stat status{};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

Result<ProcessName> name_of_this_process() {
  const ProcessName name{boot_hash(), own_pid_namespace(), static_cast<std::uint64_t>(getpid()),
                         start_of(static_cast<std::uint64_t>(getpid()))};
  if (name.boot != 0 && name.pid_namespace != 0 && name.start != 0) return name;
  return fail(ErrorCode::kUnavailable, kWhat, "/proc", "it does not tell", "mount /proc");
}

Presence presence_of(const ProcessName& name) {
  if (name.boot != boot_hash() || name.pid_namespace != own_pid_namespace()) return Presence::kElsewhere;
  return start_of(name.pid) == name.start ? Presence::kHere : Presence::kGone;
}

}  // namespace farheap::os
