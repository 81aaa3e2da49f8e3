// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "guardian.hpp"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "process_facts.hpp"

namespace farheap::tool {
namespace {

// How many children there were to kill.
int kill_children() {
  DIR* const processes = opendir("/proc");
  if (processes == nullptr) return 0;
  int killed = 0;
  while (const dirent* entry = readdir(processes)) {
    const pid_t process = std::atoi(entry->d_name);
    if (process > 0 && parent_of(process) == getpid() && kill(process, SIGKILL) == 0) ++killed;
  }
  closedir(processes);
  return killed;
}

}  // namespace

void end_all_children() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  constexpr timespec kMoment{0, 10'000'000};
  while (kill_children() != 0) {
    // Each that ends makes its children ours.
    pid_t ended = 0;
    while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0 && errno == ECHILD) return;
    sigtimedwait(&child, nullptr, &kMoment);
  }
}

int guard(pid_t program, pid_t tool, const sigset_t& forwarded, std::atomic<bool>& stopped) {
  sigset_t awaited = forwarded;
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, kToolDied);
  int signal = 0;
  while (true) {
    if (signal == kToolDied || getppid() != tool) {
      end_all_children();
      _exit(128 + SIGKILL);
    }
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
      if (ended != program) continue;
      if (WIFSTOPPED(status)) {
        stopped = true;
        kill(tool, SIGCHLD);
      } else if (WIFCONTINUED(status)) {
        stopped = false;
        kill(tool, SIGCONT);
      } else {
        stopped = false;  // it may have ended before it was seen to go on
        return status;
      }
    }
    siginfo_t info{};
    signal = sigwaitinfo(&awaited, &info);
    // What came from elsewhere to the whole group, the program has got as well.
    if (signal > 0 && sigismember(&forwarded, signal) == 1 && info.si_pid == tool) kill(program, signal);
  }
}

}  // namespace farheap::tool
