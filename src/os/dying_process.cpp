// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/dying_process.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "os/small_file.hpp"

namespace farheap::os {
namespace {

constexpr unsigned kExiting = 0x4;  // PF_EXITING of the kernel

// "PID (NAME) STATE PPID PGRP SESSION TTY TPGID FLAGS ...": the name may hold anything.
bool says_that_it_ends(const std::string& stat) {
  const auto name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return false;
  char state = 0;
  unsigned flags = 0;
  if (std::sscanf(stat.c_str() + name_end + 2, "%c %*d %*d %*d %*d %*d %u", &state, &flags) != 2) return false;
  return state == 'Z' || state == 'X' || state == 'x' || (flags & kExiting) != 0;
}

bool has_pending_kill(std::string_view status, std::string_view field) {
  const auto at = status.find(field);
  if (at == std::string_view::npos) return false;
  const auto mask = std::strtoull(status.data() + at + field.size(), nullptr, 16);
  return (mask >> (SIGKILL - 1) & 1) != 0;
}

}  // namespace

bool is_dying(pid_t process) {
  if (process <= 0) return false;
  const auto stat = read_small_file(fmt::format("/proc/{}/stat", process));
  if (!stat) return false;
  if (says_that_it_ends(*stat)) return true;
  const auto status = read_small_file(fmt::format("/proc/{}/status", process));
  return status && (has_pending_kill(*status, "\nSigPnd:") || has_pending_kill(*status, "\nShdPnd:"));
}

}  // namespace farheap::os
