// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "guardian.hpp"
#include "os/mapping.hpp"

namespace farheap::tool {
namespace {

// All that one process sends to another to tell it something. Not here: what a program does to itself (SIGSEGV,
// SIGPIPE,
// ...), what the terminal sends to whole groups only (SIGTTIN, SIGTTOU), and kToolDied.
constexpr int kForwarded[] = {SIGHUP,  SIGINT,  SIGQUIT,   SIGTERM, SIGUSR1, SIGUSR2, SIGCONT,
                              SIGTSTP, SIGALRM, SIGVTALRM, SIGPROF, SIGURG,  SIGIO,   SIGWINCH};

sigset_t forwarded_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int one : kForwarded) sigaddset(&set, one);
  for (int one = SIGRTMIN; one <= SIGRTMAX; ++one) sigaddset(&set, one);
  return set;
}

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
  HeldSignals() : held_(forwarded_signals()) {
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
  sigset_t held_;
  sigset_t mask_before_{};
  struct sigaction child_before_{};
};

// In the child; reports through `report` why the program could not be executed.
[[noreturn]] void become(const std::string& path, char* const* arguments, char* const* environment, pid_t parent,
                         const HeldSignals& signals, int report, const std::vector<int>& inherited) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int file : inherited) fcntl(file, F_SETFD, 0);
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

ChildEnd end_of(int status) {
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

// In the guardian: starts the program, and tells the tool through `outcome` how it ended.
[[noreturn]] void be_guardian(pid_t tool, const HeldSignals& signals, std::atomic<bool>& stopped, int outcome,
                              int report, const std::vector<int>& inherited, const std::string& path,
                              char* const* arguments, char* const* environment) {
  sigset_t all;
  sigfillset(&all);  // neither the terminal nor a signal to the whole group ends or stops it
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, "farheap-guard");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, kToolDied);
  const pid_t self = getpid();
  const pid_t program = fork();
  if (program == 0) become(path, arguments, environment, self, signals, report, inherited);
  const int why = errno;
  if (program < 0 && write(report, &why, sizeof why) != sizeof why) _exit(127);
  if (program < 0) _exit(0);
  close(report);  // the tool reads until exec() has closed the program's
  const int status = guard(program, tool, forwarded_signals(), stopped);
  if (write(outcome, &status, sizeof status) == sizeof status) _exit(0);
  end_all_children();  // the tool has just gone, too
  _exit(127);
}

sigset_t only(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

// Takes a blocked signal that is pending; false if it is not.
bool take_pending(int signal, siginfo_t& info) {
  constexpr timespec kNow{};
  const sigset_t set = only(signal);
  return sigtimedwait(&set, &info, &kNow) > 0;
}

// As Ctrl-Z would, unless the program goes on already. SIGSTOP would also stop what nobody would continue: a job
// without a shell. The order counts. If the guardian sends SIGCONT after the look at `stopped`, the kernel takes the
// pending SIGTSTP away. If it sent SIGCONT before, it had cleared `stopped`.
void stop_as_the_program_did(const std::atomic<bool>& stopped) {
  const sigset_t stop = only(SIGTSTP);
  raise(SIGTSTP);
  if (stopped) {
    sigprocmask(SIG_UNBLOCK, &stop, nullptr);
    sigprocmask(SIG_BLOCK, &stop, nullptr);
  } else {
    siginfo_t info{};
    take_pending(SIGTSTP, info);
  }
}

bool is_running(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

// Until the guardian has ended; its signals go through it, so that none can hit a process that took the program's
// number. Whoever waits for the tool sees it stop and go on with the program.
void wait_for(pid_t guardian, const HeldSignals& signals, const std::atomic<bool>& stopped) {
  // The program has the terminal's signals (SI_KERNEL) already. The guardian's SIGCONT was for this process.
  const auto pass_on = [guardian](const siginfo_t& info) {
    if (info.si_code != SI_KERNEL && info.si_pid != guardian) kill(guardian, info.si_signo);
  };
  while (waitpid(guardian, nullptr, WNOHANG) == 0) {
    siginfo_t info{};
    if (sigwaitinfo(&signals.set(), &info) <= 0) continue;
    if (info.si_signo != SIGCHLD) {
      pass_on(info);
    } else if (stopped && is_running(guardian)) {
      if (take_pending(SIGCONT, info)) pass_on(info);  // the stop would take it away
      stop_as_the_program_did(stopped);
    }
  }
}

template <class Value>
bool read_whole(int pipe, Value& value) {
  ssize_t got = 0;
  do {
    got = read(pipe, &value, sizeof value);
  } while (got < 0 && errno == EINTR);
  return got == sizeof value;
}

// Both ends; closed by hand or when it goes out of scope.
class Pipe {
 public:
  Pipe() { made_ = pipe2(ends_, O_CLOEXEC) == 0; }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] int end(int which) const { return ends_[which]; }
  void close_end(int which) {
    if (ends_[which] >= 0) close(ends_[which]);
    ends_[which] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
  bool made_ = false;
};

}  // namespace

int shell_status(const Error& error) { return error.code == ErrorCode::kNotFound ? 127 : 126; }

Result<ChildEnd> run_child(const std::string& path, const std::vector<std::string>& command,
                           const std::vector<std::string>& environment, const std::vector<int>& inherited) {
  Pipe report, outcome;
  if (!report.made() || !outcome.made()) return fail(errno_error(errno, "cannot make a pipe", "pipe2"));
  const auto arguments = pointers(command);
  const auto variables = pointers(environment);
  auto shared = os::ReservedArray<std::atomic<bool>>::make(1, true);
  if (!shared) return fail(std::move(shared.error()));
  std::atomic<bool>& stopped = (*shared)[0];
  const HeldSignals signals;
  const pid_t tool = getpid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // if the guardian is killed, the program's children fall to us
  const pid_t guardian = fork();
  if (guardian == 0) {
    be_guardian(tool, signals, stopped, outcome.end(1), report.end(1), inherited, path, arguments.data(),
                variables.data());
  }
  if (guardian < 0) return fail(errno_error(errno, "cannot start a process", path));
  report.close_end(1);
  outcome.close_end(1);
  int why = 0;
  const bool failed = read_whole(report.end(0), why);
  wait_for(guardian, signals, stopped);
  if (failed) return fail(errno_error(why, "cannot run", path));
  int status = 0;
  if (read_whole(outcome.end(0), status)) return end_of(status);
  end_all_children();  // it was killed, and the program with it
  return end_of(SIGKILL);
}

}  // namespace farheap::tool
