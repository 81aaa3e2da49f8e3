// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forks past fork(): no handlers of the C library run.
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "forks.hpp"

using namespace cases;

namespace {

struct ForChild {
  void* at;
  std::uint64_t was, now;
};

int rewrite_in_child(void* data) {
  const auto& mine = *static_cast<const ForChild*>(data);
  verify_and_rewrite(mine.at, kShared, mine.was, mine.now);
  return 17;
}

// Not through the C library at all.
long fork_by_hand() {
  long result = SYS_fork;
  asm volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
  return result;
}

}  // namespace

// The C library runs no handlers for these; in the child, pages that had left read as zeros.
CASE(forks_without_handlers) {
  void* at = malloc(kShared);
  fill(at, kShared, 1);
  std::uint64_t was = 1;
  const auto beside = [&](long child) {
    CHECK(child >= 0);
    if (child == 0) _exit(rewrite_in_child(new ForChild{at, was, was + 1}));
    verify_and_rewrite(at, kShared, was, was + 2);
    was += 2;
    CHECK(status_of(static_cast<int>(child)) == 17);
  };
  clone_args args{};
  args.exit_signal = SIGCHLD;
  beside(_Fork());
  beside(syscall(SYS_fork));
  beside(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  beside(syscall(SYS_clone3, &args, sizeof args));
  // Not to share descriptors would be a surprise to none; the child used to close the runtime's of its parent.
  beside(syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0));
  args.flags = CLONE_FILES;
  beside(syscall(SYS_clone3, &args, sizeof args));
  beside(fork());
  CHECK_FILLED(at, kShared, was);
}

CASE(clone_with_a_stack_in_the_heap) {
  constexpr std::size_t kStack = 512 << 10;
  auto* stack = static_cast<std::byte*>(malloc(kStack));
  fill(stack, kStack, 5);
  void* at = malloc(kShared);
  fill(at, kShared, 1);  // by now the stack has left
  for (int i = 0; i < 3; ++i) {
    auto* data = new ForChild{at, 1, 2};
    const int child = clone(rewrite_in_child, stack + kStack, SIGCHLD, data);
    CHECK(child > 0);
    CHECK_FILLED(at, kShared, 1);
    CHECK(status_of(child) == 17);
    CHECK_FILLED(stack, kStack - 64, 5);
  }
}

// It may end, but it must not go on with zeros.
CASE(a_fork_that_nobody_sees_is_no_silent_loss) {
  void* at = malloc(kLarge);
  fill(at, kLarge, 1);
  const long child = fork_by_hand();
  CHECK(child >= 0);
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    _exit(first_wrong(at, kLarge, 1) == -1 ? 17 : 18);
  }
  const int status = status_of(static_cast<int>(child));
  CHECK(status == 17 || status == 128 + SIGSEGV);
  CHECK_FILLED(at, kLarge, 1);
  const int seen = in_child([&] { CHECK_FILLED(at, kLarge, 1); });
  CHECK(status_of(seen) == 0);
}
