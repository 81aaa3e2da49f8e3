// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The process is a grandchild. Its parent, which starts it and ends at once, was made with no signal for its end
// (clone(2)): only waits with __WCLONE see such children, so that we can wait for it behind the program's back. Both
// run in our memory, on stacks of their own, until exec() (CLONE_VM, CLONE_VFORK): neither page tables nor the heap
// are copied, and nobody's handlers of fork() are called. All signals are blocked meanwhile, because a handler of the
// program's would run in its memory in another process.
#include "store/beside/process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/inside_runtime.hpp"
#include "base/units.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::store::beside {
namespace {

constexpr char kCannotStart[] = "cannot start farheap-engines";
constexpr std::size_t kStackBytes = 64 * base::kKiB;
constexpr int kSocket = 3;

bool is_program(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::string own_folder() {
  char path[PATH_MAX] = "";
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
  const std::string whole(path, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  return whole.substr(0, whole.rfind('/'));
}

bool is_left_out(std::string_view variable) {
  return variable.starts_with("LD_PRELOAD=") || variable.starts_with("FARHEAP_");
}

// What the two processes share with us while they run in our memory.
struct Start {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int socket;
  std::byte* inner_stack_end;
  int error = 0;
};

// The two run in our memory with another's stack, and do not return: no sanitizer's books, and nobody's functions in
// the place of the C library's, are for them.
#define FARHEAP_BARE __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

// As the kernel has it; all zeros: the standard action.
struct KernelSigaction {
  std::uint64_t handler, flags, restorer, mask;
};

FARHEAP_BARE void give_standard_signals() {
  constexpr long kMaskBytes = 8;
  const KernelSigaction standard{};
  const std::uint64_t none = 0;
  for (long one = 1; one <= 64; ++one) syscall(SYS_rt_sigaction, one, &standard, nullptr, kMaskBytes);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, kMaskBytes);
}

// Standard streams lead nowhere: a pipe of the program's ends when the program closes it.
FARHEAP_BARE void give_descriptors(long socket) {
  const long nowhere = syscall(SYS_open, "/dev/null", O_RDWR);
  if (socket <= kSocket) socket = syscall(SYS_fcntl, socket, F_DUPFD, kSocket + 1);
  for (int stream = 0; stream < 3; ++stream) syscall(SYS_dup2, nowhere, stream);
  syscall(SYS_dup2, socket, kSocket);
  syscall(SYS_close_range, kSocket + 1, ~0u, 0);
}

FARHEAP_BARE int become_engines(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  syscall(SYS_setsid);
  give_descriptors(start.socket);
  give_standard_signals();
  syscall(SYS_execve, start.program, start.arguments, start.environment);
  start.error = errno;
  syscall(SYS_exit_group, 127);
  return 0;
}

// clone(2) itself: sanitizers and the preload library have functions of that name. `body` does not return. A process
// number, or an errno value negated.
FARHEAP_BARE long clone_into(int (*body)(void*), std::byte* stack_end, long flags, void* argument) {
  auto* const top = reinterpret_cast<void**>(stack_end) - 2;
  top[0] = reinterpret_cast<void*>(body), top[1] = argument;
  register long tls asm("r8") = 0;
  register long child_number asm("r10") = 0;
  long made = SYS_clone;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "pop %%rax\n\t"
      "pop %%rdi\n\t"
      "call *%%rax\n\t"
      "hlt\n"
      "1:"
      : "+a"(made)
      : "D"(flags), "S"(top), "d"(0L), "r"(child_number), "r"(tls)
      : "rcx", "r11", "memory");
  return made;
}

FARHEAP_BARE int start_and_end(void* argument) {
  auto& start = *static_cast<Start*>(argument);
  const long made = clone_into(become_engines, start.inner_stack_end, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
  if (made < 0) start.error = static_cast<int>(-made);
  syscall(SYS_exit_group, 0);
  return 0;
}
#undef FARHEAP_BARE

class Stacks {
 public:
  Stacks() {
    base::InsideRuntime inside;  // in a program on Farheap, mmap() is Farheap's own
    at_ = mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  }
  ~Stacks() {
    base::InsideRuntime inside;
    if (are_there()) munmap(at_, 2 * kStackBytes);
  }
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  [[nodiscard]] bool are_there() const { return at_ != MAP_FAILED; }
  [[nodiscard]] std::byte* end(int which) const {
    return static_cast<std::byte*>(at_) + static_cast<std::size_t>(which + 1) * kStackBytes;
  }

 private:
  void* at_;
};

// 0, or why it was not started.
int start_process(Start& start) {
  const Stacks stacks;
  if (!stacks.are_there()) return ENOMEM;
  start.inner_stack_end = stacks.end(1);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const long between = clone_into(start_and_end, stacks.end(0), CLONE_VM | CLONE_VFORK, &start);
  // A thread of the program that waits for every kind of child may be there first; then there is none (ECHILD).
  while (between > 0 && waitpid(static_cast<pid_t>(between), nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return between < 0 ? static_cast<int>(-between) : start.error;
}

}  // namespace

Result<std::string> find_engines() {
  const char* const named = base::environment("FARHEAP_ENGINES");
  if (named != nullptr && *named != '\0') {
    if (is_program(named)) return std::string(named);
    return fail(ErrorCode::kNotFound, "cannot find farheap-engines", named, "no program is there",
                "correct FARHEAP_ENGINES");
  }
  std::vector<std::string> places{FARHEAP_ENGINES_INSTALLED};
  // Beside a program with raised rights may stand what somebody else has put there: a link makes any folder its own.
  if (!base::has_raised_rights()) {
    const std::string folder = own_folder();
    places.insert(places.begin(), {folder + "/" FARHEAP_ENGINES_FROM_TOOL, folder + "/../src/engines/farheap-engines"});
  }
  std::string tried;
  for (const std::string& place : places) {
    if (is_program(place)) return place;
    tried += (tried.empty() ? "" : " ") + place;
  }
  return fail(ErrorCode::kNotFound, "cannot find farheap-engines", tried, "it is not there",
              "install Farheap whole, or say where it is with FARHEAP_ENGINES=PATH");
}

Result<int> start_engines(const std::string& program) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(errno_error(errno, kCannotStart, "a pair of sockets"));
  }
  char name[] = "farheap-engines";
  char* const arguments[] = {name, nullptr};
  std::vector<char*> environment;
  for (auto at = base::environment_lines(); *at != nullptr; ++at) {
    if (!is_left_out(*at)) environment.push_back(const_cast<char*>(*at));  // execve does not write to them
  }
  environment.push_back(nullptr);
  Start start{program.c_str(), arguments, environment.data(), ends[1], nullptr};
  const int error = start_process(start);
  os::release_descriptor(ends[1]);
  if (error == 0) return os::keep_descriptor(ends[0]);
  os::release_descriptor(ends[0]);
  return fail(errno_error(error, kCannotStart, program));
}

}  // namespace farheap::store::beside
