// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "live_core.hpp"
#include "base/clock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "pager/core_index.hpp"
#include "process_facts.hpp"

namespace farheap::tool {
namespace {

using base::kPageBytes;

constexpr char kCannotMakeCore[] = "cannot make a core";
constexpr char kRemedy[] = "be the user of the process, or root; `sysctl kernel.yama.ptrace_scope` may forbid it, too";
constexpr std::chrono::milliseconds kAtMost = std::chrono::minutes(1);
constexpr auto kOneTry = std::chrono::seconds(1);
constexpr auto kMoment = std::chrono::milliseconds(10);

std::string subject(pid_t process) { return fmt::format("process {}", process); }

// The memory of a process, without waiting for pages that are not there, as process_vm_readv() does: who brings them
// may be stopped.
class Memory {
 public:
  explicit Memory(pid_t process) : file_(open(fmt::format("/proc/{}/mem", process).c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Memory() {
    if (file_ >= 0) close(file_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> into) const {
    return pread(file_, into.data(), into.size(), static_cast<off_t>(address)) == static_cast<ssize_t>(into.size());
  }

 private:
  int file_;
};

std::filesystem::path folder_of(pid_t process) { return fmt::format("/proc/{}", process); }

// Calls visit(path) for what is in the folder, until it says false.
template <class Visit>
bool for_all_in(const std::filesystem::path& folder, Visit visit) {
  std::error_code gone;
  for (auto at = std::filesystem::directory_iterator(folder, gone);
       !gone && at != std::filesystem::directory_iterator(); at.increment(gone)) {
    if (!visit(at->path())) return false;
  }
  return true;
}

bool all_threads_stopped(pid_t process) {
  return for_all_in(folder_of(process) / "task", [](const std::filesystem::path& thread) {
    const char state = state_of(std::atoi(thread.filename().c_str()));
    return std::strchr("TtZX", state) != nullptr;  // the zero of one that is gone is found, too
  });
}

// By which those who write to a store exclude others (store/side_table.hpp). Who only has it open may hold locks for
// reading.
bool holds_locks_in(pid_t process, const std::string& place) {
  const auto is_free = [&](const std::filesystem::path& descriptor) {
    std::error_code gone;
    const std::string path = std::filesystem::read_symlink(descriptor, gone);
    if (gone || !path.starts_with(place)) return true;
    std::ifstream facts(folder_of(process) / "fdinfo" / descriptor.filename());
    for (std::string line; std::getline(facts, line);) {
      if (line.find(" WRITE ") != std::string::npos) return false;
    }
    return true;
  };
  return !for_all_in(folder_of(process) / "fd", is_free);
}

// Waits until it is true, but not for longer.
template <class Condition>
bool becomes(Condition condition, std::chrono::milliseconds at_most = kAtMost) {
  const auto end = base::Clock::now() + at_most;
  while (!condition()) {
    if (base::Clock::now() > end) return false;
    base::sleep_for(kMoment);
  }
  return true;
}

[[noreturn]] void be_gdb(pid_t process, const std::string& out) {
  umask(077);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int descriptor : {0, 1, 2}) dup2(nothing, descriptor);
  const std::string number = std::to_string(process);
  const std::string command = "generate-core-file " + out;
  execlp("gdb", "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off", "-p",
         number.c_str(), "-ex", command.c_str(), "-ex", "detach", nullptr);
  _exit(127);
}

}  // namespace

Result<CoreNotes> find_live_notes(pid_t process) {
  std::ifstream maps(fmt::format("/proc/{}/maps", process));
  if (!maps)
    return fail(ErrorCode::kNotFound, kCannotMakeCore, subject(process), "there is none of this number", "see `ps`");
  const Memory memory(process);
  if (!memory.is_open()) return fail(errno_error(errno, kCannotMakeCore, subject(process), kRemedy));
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    const bool fits = std::sscanf(line.c_str(), "%lx-%lx rw-p 00000000 00:00 0", &begin, &end) == 2;
    if (!fits || end - begin < sizeof(pager::CoreHeader)) continue;
    alignas(8) std::byte bytes[sizeof(pager::CoreHeader)];
    if (!memory.read(begin, std::span(bytes).first(sizeof pager::kCoreMagic))) continue;
    if (std::memcmp(bytes, pager::kCoreMagic, sizeof pager::kCoreMagic) != 0) continue;
    if (memory.read(begin, bytes)) return read_notes(bytes, subject(process));
  }
  return no_notes(subject(process));
}

Result<StoppedProcess> StoppedProcess::stop(pid_t process, const std::string& place) {
  const bool was_stopped = state_of(process) == 'T';
  std::error_code ignored;
  const std::string files = std::filesystem::weakly_canonical(place, ignored);  // as the kernel names them
  const auto is_at_rest = [&] {
    return becomes([&] { return all_threads_stopped(process); }, kOneTry) && !holds_locks_in(process, files);
  };
  for (const auto end = base::Clock::now() + kAtMost; base::Clock::now() < end;) {
    if (kill(process, SIGSTOP) != 0) return fail(errno_error(errno, kCannotMakeCore, subject(process), kRemedy));
    StoppedProcess stopped(was_stopped ? 0 : process);
    if (is_at_rest()) return stopped;
    if (was_stopped) {
      return fail(ErrorCode::kUnavailable, kCannotMakeCore, subject(process),
                  "it was stopped while it wrote to its store", fmt::format("let it go on: kill -CONT {}", process));
    }
    stopped.let_go();
    base::sleep_for(kMoment);
  }
  return fail(ErrorCode::kUnavailable, kCannotMakeCore, subject(process),
              "whenever it was stopped it wrote to its store, or a system call of it waited for a page", "try again");
}

void StoppedProcess::let_go() {
  if (process_ != 0) kill(std::exchange(process_, 0), SIGCONT);
}

Status dump_by_gdb(pid_t process, const std::string& out) {
  const pid_t gdb = fork();
  if (gdb == 0) be_gdb(process, out);
  if (gdb < 0) return fail(errno_error(errno, kCannotMakeCore, "gdb"));
  int status = 0;
  if (!becomes([&] { return waitpid(gdb, &status, WNOHANG) != 0; })) {
    kill(gdb, SIGKILL);
    waitpid(gdb, nullptr, 0);
    return fail(ErrorCode::kUnavailable, kCannotMakeCore, subject(process), "gdb does not get hold of all its threads",
                "try again: one of them was in a system call that waits for a page");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    return fail(ErrorCode::kUnavailable, kCannotMakeCore, "gdb", "it is not installed", "apt install gdb");
  }
  if (access(out.c_str(), F_OK) == 0) return {};
  return fail(ErrorCode::kPermission, kCannotMakeCore, subject(process), "gdb cannot attach to it", kRemedy);
}

Status copy_from_memory(pid_t process, const CoreNotes& notes, CoreFile& core) {
  const Memory memory(process);
  if (!memory.is_open()) return fail(errno_error(errno, kCannotMakeCore, subject(process), kRemedy));
  std::vector<std::byte> page(kPageBytes);
  Status copied;
  const auto copy = [&](std::uint64_t from, std::uint64_t bytes) {
    for (std::uint64_t at = from; at < from + bytes && copied; at += kPageBytes) {
      if (!memory.read(at, page)) continue;
      auto written = core.write(at, page);
      if (!written && written.error().code != ErrorCode::kNotFound) copied = std::move(written);
    }
  };
  copy(notes.base, notes.pages * kPageBytes);
  copy(notes.staging, notes.pages * kPageBytes);
  copy(notes.entries, base::round_up(notes.pages * sizeof(pager::CorePage), kPageBytes));
  return copied;
}

}  // namespace farheap::tool
