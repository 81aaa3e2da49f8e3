// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Says why, where a fault is one of code that was not translated; the fault then ends the program as it would have.
//
// Invariant: the usual action comes back when the words are out, and not before: another thread that faults meanwhile
// waits in the handler, or it would end the program in the middle of them. Not for ever: it may have faulted while it
// held the loader's lock, which the words need.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "far.hpp"

namespace farheap::translate {
namespace {

void* place_of_fault(const void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#else
  (void)context;
  return nullptr;
#endif
}

constexpr timespec kTurn = {0, 1'000'000};
constexpr int kMostTurns = 5000;

std::atomic<bool> g_is_explained{false};  // by a thread that has begun
std::atomic<bool> g_is_usual_again{false};

// Of code at `at`, as far as it is known; a program's own functions have no names for the loader.
void name_place(const void* at, char* text, std::size_t bytes) {
  Dl_info place{};
  if (dladdr(at, &place) == 0 || place.dli_fname == nullptr) {
    (void)std::snprintf(text, bytes, "in code at %p", at);
  } else if (place.dli_sname != nullptr) {
    (void)std::snprintf(text, bytes, "in %s of %s, at %p", place.dli_sname, place.dli_fname, at);
  } else {
    const bool is_fixed = static_cast<const ElfW(Ehdr)*>(place.dli_fbase)->e_type == ET_EXEC;
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    const auto in_file = is_fixed ? address : address - reinterpret_cast<std::uintptr_t>(place.dli_fbase);
    (void)std::snprintf(text, bytes, "in a function of %s, which `addr2line -f -e %s 0x%zx` names", place.dli_fname,
                        place.dli_fname, static_cast<std::size_t>(in_file));
  }
}

void say(const siginfo_t* info, const void* context) {
  const char* what = nullptr;
  const char* why = nullptr;
  if (is_far(info->si_addr)) {
    what = "far memory";
    why =
        "that code was not translated; with FARHEAP_FAR_MODE=cached it may touch it; or compile it with farcc "
        "-ffar=translate-heap, or give it local memory; or, if it "
        "keeps no pointer, name the function that your code calls with -ffar-borrow= (`farcc -ffar-report` lists the "
        "calls that pass pointers as they are)";
  } else if (was_moved(info->si_addr)) {
    what = "the variable";
    why =
        "the variable was moved to the far heap, and that code was not translated with -ffar-globals, or had its "
        "address before it was moved; compile it with the same options, or name the variable with -ffar-leave=";
  } else if (was_lent(info->si_addr)) {
    what = "what was lent";
    why =
        "the function that it was lent to kept the pointer, or went beyond its end; it is none for -ffar-borrow=: "
        "compile it with farcc -ffar=translate-heap";
  } else {
    return;
  }
  char place[768];
  name_place(place_of_fault(context), place, sizeof place);
  char text[1536];
  const int length =
      std::snprintf(text, sizeof text, "farheap: cannot touch %s at %p: %s: %s\n", what, info->si_addr, place, why);
  if (length > 0) (void)!write(STDERR_FILENO, text, std::min<std::size_t>(length, sizeof text - 1));
}

// Afterwards the instruction is tried again, and the program ends by the signal.
void explain(int, siginfo_t* info, void* context) {
  const int before = errno;
  if (!g_is_explained.exchange(true)) {
    const bool is_fault = info->si_code > 0;
    if (is_fault) say(info, context);
    (void)std::signal(SIGSEGV, SIG_DFL);
    if (!is_fault) (void)raise(SIGSEGV);  // somebody's kill(), which nothing repeats
    g_is_usual_again = true;
  }
  for (int turn = 0; !g_is_usual_again && turn < kMostTurns; ++turn) (void)nanosleep(&kTurn, nullptr);
  if (!g_is_usual_again) (void)std::signal(SIGSEGV, SIG_DFL);
  errno = before;
}

}  // namespace

void explain_faults() {
  struct sigaction now{};
  if (sigaction(SIGSEGV, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction ours{};
  ours.sa_sigaction = explain;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  (void)sigaction(SIGSEGV, &ours, nullptr);  // without it there are no words, and no other difference
}

}  // namespace farheap::translate
