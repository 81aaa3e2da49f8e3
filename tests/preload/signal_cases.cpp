// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signals that arrive while memory is far, and jumps over frames.
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cases.hpp"

using namespace cases;

namespace {

std::uint64_t* g_far = nullptr;
constexpr std::size_t kFar = 64 * kMebibyte;
volatile sig_atomic_t g_alarms = 0;
std::size_t g_next = 0;

void touch_far(int) {
  // Another page each time: most have left.
  for (int i = 0; i < 4; ++i) {
    g_next = (g_next + 1'000'003) % (kFar / 8);
    if (g_far[g_next] != word(6, g_next)) failed(__FILE__, __LINE__, "the handler's memory is right");
  }
  g_alarms = g_alarms + 1;
}

void start_alarms(int signal_flags) {
  g_far = static_cast<std::uint64_t*>(malloc(kFar));
  fill(g_far, kFar, 6);
  struct sigaction action{};
  action.sa_handler = touch_far;
  action.sa_flags = signal_flags;
  CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
  const itimerval often{{0, 2000}, {0, 2000}};
  CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
}

void stop_alarms() {
  const itimerval never{};
  CHECK(setitimer(ITIMER_REAL, &never, nullptr) == 0);
}

// Maps, drops and unmaps: the calls that meet the runtime's own locks.
void churn(int least_alarms) {
  for (int round = 0; round < 40 || g_alarms < least_alarms; ++round) {
    char* at =
        static_cast<char*>(mmap(nullptr, 4 * kMebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(at != MAP_FAILED);
    for (std::size_t i = 0; i < 4 * kMebibyte; i += kPage) at[i] = 1;
    for (std::size_t i = 0; i < 4 * kMebibyte; i += 16 * kPage) CHECK(madvise(at + i, kPage, MADV_DONTNEED) == 0);
    CHECK(munmap(at, 4 * kMebibyte) == 0);
    void* block = malloc(3 * kMebibyte);
    memset(block, 2, 3 * kMebibyte);
    free(block);
  }
}

}  // namespace

CASE(alarms_that_touch_far_memory) {
  start_alarms(SA_RESTART);
  churn(300);
  stop_alarms();
  CHECK_FILLED(g_far, kFar, 6);
}

CASE(alarms_on_a_stack_in_the_heap) {
  stack_t stack{};
  stack.ss_size = 256 << 10;
  stack.ss_sp = aligned_alloc(kPage, stack.ss_size);
  memset(stack.ss_sp, 1, stack.ss_size);
  CHECK(sigaltstack(&stack, nullptr) == 0);
  start_alarms(SA_RESTART | SA_ONSTACK);
  churn(300);
  stop_alarms();
}

CASE(alarms_while_forking) {
  start_alarms(SA_RESTART);
  for (int i = 0; i < 15; ++i) {
    const int child = fork();
    if (child == 0) {
      g_far[i] = 0;
      _exit(g_far[i + 1000] == word(6, static_cast<std::size_t>(i) + 1000) ? 0 : 1);
    }
    const int status = status_of(child);
    CHECK(status == 0);
  }
  stop_alarms();
}

CASE(alarms_while_paging_starts) {
  struct sigaction action{};
  g_far = static_cast<std::uint64_t*>(malloc(4 * kMebibyte));
  fill(g_far, 4 * kMebibyte, 6);
  action.sa_handler = [](int) {
    static char* fresh = reinterpret_cast<char*>(g_far);
    g_next = (g_next + 1'000'003) % (4 * kMebibyte / 8);
    if (reinterpret_cast<std::uint64_t*>(fresh)[g_next] != word(6, g_next)) failed(__FILE__, __LINE__, "right");
  };
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
  const itimerval often{{0, 500}, {0, 500}};
  CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  for (int i = 0; i < 40; ++i) memset(malloc(kMebibyte), 1, kMebibyte);
  stop_alarms();
  push_out();
  CHECK_FILLED(g_far, 4 * kMebibyte, 6);
}

CASE(jumps_out_of_a_handler) {
  static sigjmp_buf back;
  signal(SIGUSR1, [](int) { siglongjmp(back, 1); });
  static volatile int jumps;
  jumps = 0;
  auto* at = static_cast<std::uint64_t*>(malloc(kLarge));
  fill(at, kLarge, 1);
  while (jumps < 50) {
    if (sigsetjmp(back, 1) == 0) {
      CHECK(at[static_cast<std::size_t>(jumps) * 200'000] == word(1, static_cast<std::size_t>(jumps) * 200'000));
      raise(SIGUSR1);
      CHECK(!"reached");
    }
    jumps = jumps + 1;
  }
  static jmp_buf plain;
  volatile int rounds = 0;
  if (setjmp(plain) < 5) {
    push_out();
    rounds = rounds + 1;
    longjmp(plain, rounds);
  }
  CHECK(rounds == 5);
  CHECK_FILLED(at, kLarge, 1);
}

// The program's own handler of segmentation faults goes on working: page faults of the runtime are none.
CASE(own_segmentation_faults) {
  static sigjmp_buf back;
  static void* volatile where;
  struct sigaction action{};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    where = info->si_addr;
    siglongjmp(back, 1);
  };
  action.sa_flags = SA_SIGINFO;
  CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
  char* at = static_cast<char*>(aligned_alloc(kPage, 64 * kPage));
  memset(at, 1, 64 * kPage);
  push_out();
  CHECK(mprotect(at + 8 * kPage, kPage, PROT_NONE) == 0);
  for (int i = 0; i < 3; ++i) {
    where = nullptr;
    if (sigsetjmp(back, 1) == 0) {
      at[8 * kPage + 5] = 1;
      CHECK(!"reached");
    }
    CHECK(where == at + 8 * kPage + 5);
    push_out();
  }
  CHECK(mprotect(at + 8 * kPage, kPage, PROT_READ | PROT_WRITE) == 0);
  for (std::size_t i = 0; i < 64 * kPage; ++i) CHECK(at[i] == 1);
}

CASE(blocked_signals_stay_blocked) {
  sigset_t some, now;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR2);
  CHECK(sigprocmask(SIG_BLOCK, &some, nullptr) == 0);
  push_out();
  CHECK(raise(SIGUSR2) == 0);
  push_out();
  CHECK(sigprocmask(SIG_SETMASK, nullptr, &now) == 0);
  CHECK(sigismember(&now, SIGUSR2) == 1 && sigismember(&now, SIGUSR1) == 0 && sigismember(&now, SIGALRM) == 0);
  CHECK(sigpending(&now) == 0 && sigismember(&now, SIGUSR2) == 1);
}

// For core_dump_test.py. The text is nowhere in the program's own file.
CASE(aborts_with_used_memory) {
  fill(malloc(kLarge), kLarge, 1);
  constexpr char kBackwards[] = "eroc eht ni si desu si tahw";
  constexpr std::size_t kLength = sizeof kBackwards - 1;
  auto* used = static_cast<volatile char*>(malloc(kLength + 1));
  for (std::size_t i = 0; i < kLength; ++i) used[i] = kBackwards[kLength - 1 - i];
  abort();
}
