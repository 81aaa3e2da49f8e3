// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace farheap::tool {
namespace {

constexpr int kForwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const auto& text : texts) result.push_back(const_cast<char*>(text.c_str()));  // execve does not write to them
  result.push_back(nullptr);
  return result;
}

// Blocks the forwarded signals and SIGCHLD for the time of the wait, and makes SIGCHLD arrive even if whoever
// started the tool ignored it.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    for (int one : kForwarded) sigaddset(&held_, one);
    sigaddset(&held_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &held_, &mask_before_);
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &standard, &child_before_);
  }
  ~HeldSignals() { release(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void release() const {
    sigaction(SIGCHLD, &child_before_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  [[nodiscard]] const sigset_t& set() const { return held_; }

 private:
  sigset_t held_{};
  sigset_t mask_before_{};
  struct sigaction child_before_{};
};

// In the child; reports through `report` why the program could not be executed.
[[noreturn]] void become(const std::string& path, char* const* arguments, char* const* environment, pid_t parent,
                         const HeldSignals& signals, int report) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it was killed before the line above
  signals.release();
  execve(path.c_str(), arguments, environment);
  if (errno == ENOEXEC) {  // neither ELF nor "#!": as execvp and every shell do
    std::vector<char*> shell{const_cast<char*>("/bin/sh"), const_cast<char*>(path.c_str())};
    for (char* const* at = arguments + 1; *at != nullptr; ++at) shell.push_back(*at);
    shell.push_back(nullptr);
    execve(shell[0], shell.data(), environment);
  }
  const int why = errno;
  [[maybe_unused]] auto ignored = write(report, &why, sizeof why);
  _exit(127);
}

ChildEnd wait_for(pid_t child, const HeldSignals& signals) {
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child && WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
    if (ended == child && WIFEXITED(status)) return {WEXITSTATUS(status), 0};
    siginfo_t info{};
    const int signal = sigwaitinfo(&signals.set(), &info);
    // What the terminal sent (SI_KERNEL), the program has got as well.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(child, signal);
  }
}

}  // namespace

int shell_status(const Error& error) { return error.code == ErrorCode::kNotFound ? 127 : 126; }

Result<ChildEnd> run_child(const std::string& path, const std::vector<std::string>& command,
                           const std::vector<std::string>& environment) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return fail(errno_error(errno, "cannot make a pipe", "pipe2"));
  const auto arguments = pointers(command);
  const auto variables = pointers(environment);
  const HeldSignals signals;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(path, arguments.data(), variables.data(), parent, signals, report[1]);
  const int fork_errno = errno;
  close(report[1]);
  if (child < 0) {
    close(report[0]);
    return fail(errno_error(fork_errno, "cannot start a process", path));
  }
  int why = 0;
  ssize_t got = 0;
  do {
    got = read(report[0], &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  close(report[0]);
  const ChildEnd end = wait_for(child, signals);
  if (got == sizeof why) return fail(errno_error(why, "cannot run", path));
  return end;
}

}  // namespace farheap::tool
