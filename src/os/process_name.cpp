// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: kGone is said only on proof. What cannot be read proves nothing; kill() sees also what /proc hides.
#include "os/process_name.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <optional>
#include <string>
#include <string_view>

#include "os/small_file.hpp"

namespace farheap::os {
namespace {

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// What proc(5)'s /proc/PID/stat says of a process.
struct Stat {
  bool has_ended = false;   // it only waits for its parent to ask
  std::uint64_t start = 0;  // 0: it does not say
};

// What stands before the last ')' may hold anything. A first thread that has ended leaves a process in state Z, which
// runs on with its other threads.
Stat parse_stat(std::string_view text) {
  constexpr int kState = 3, kThreads = 20, kStart = 22;
  Stat stat;
  std::size_t at = text.rfind(')');
  char state = 0;
  std::uint64_t threads = 0;
  for (int field = kState; field <= kStart && at != std::string_view::npos; ++field) {
    at = text.find(' ', at + 1);
    if (at == std::string_view::npos || at + 1 >= text.size()) return {};
    if (field == kState) state = text[at + 1];
    if (field == kThreads) threads = number_in(text.substr(at + 1));
    if (field == kStart) stat.start = number_in(text.substr(at + 1));
  }
  stat.has_ended = (state == 'Z' || state == 'X') && threads <= 1;
  return stat;
}

// Whether the numbers in /proc are those of this process's pid namespace: `unshare --pid` alone leaves it another's.
// NStgid has a number for each namespace from that of the mount inwards.
bool is_proc_ours() {
  const auto status = read_small_file("/proc/self/status");
  if (!status) return false;
  constexpr std::string_view kLine = "\nNStgid:\t";
  const std::size_t at = status->find(kLine);
  if (at == std::string::npos) return false;
  const std::size_t first = at + kLine.size();
  const std::string numbers = status->substr(first, status->find('\n', first) - first);
  return numbers == std::to_string(getpid());
}

std::optional<Stat> stat_of(std::uint64_t pid) {
  if (!is_proc_ours()) return std::nullopt;
  const auto text = read_small_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::nullopt;
  return parse_stat(*text);
}

std::uint64_t boot_hash() {
  const auto text = read_small_file("/proc/sys/kernel/random/boot_id");
  return text ? XXH3_64bits(text->data(), text->size()) : 0;
}

std::uint64_t own_namespace(const char* file) {
  struct stat status{};
  return stat(file, &status) == 0 ? status.st_ino : 0;
}

std::uint64_t own_pid_namespace() { return own_namespace("/proc/self/ns/pid"); }

// Before Linux 5.6 there are none, and all share one clock.
std::uint64_t own_time_namespace() {
  constexpr std::uint64_t kTheOnlyOne = 1;
  errno = 0;
  const std::uint64_t number = own_namespace("/proc/self/ns/time");
  return number == 0 && errno == ENOENT && own_pid_namespace() != 0 ? kTheOnlyOne : number;
}

bool is_same(std::uint64_t told, std::uint64_t own) { return told != 0 && told == own; }

}  // namespace

ProcessName name_of_this_process() {
  const auto pid = static_cast<std::uint64_t>(getpid());
  return {boot_hash(), own_pid_namespace(), own_time_namespace(), pid, stat_of(pid).value_or(Stat{}).start};
}

Presence presence_of(const ProcessName& name) {
  if (!is_same(name.boot, boot_hash()) || !is_same(name.pid_namespace, own_pid_namespace()))
    return Presence::kElsewhere;
  if (name.pid == 0 || name.pid > INT_MAX) return Presence::kElsewhere;
  if (kill(static_cast<pid_t>(name.pid), 0) != 0 && errno == ESRCH) return Presence::kGone;
  if (name.start == 0 || !is_same(name.time_namespace, own_time_namespace())) return Presence::kElsewhere;
  const auto found = stat_of(name.pid);
  if (!found || found->start == 0) return Presence::kElsewhere;
  return found->start != name.start || found->has_ended ? Presence::kGone : Presence::kHere;
}

}  // namespace farheap::os
