// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Says why, where a fault is one of code that was not translated; the fault then ends the program as it would have.
#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
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

void explain(int, siginfo_t* info, void* context) {
  // The usual action is back: the instruction is tried again, and the program ends by the signal.
  if (info->si_code <= 0) {  // somebody's kill(), which nothing repeats
    (void)raise(SIGSEGV);
    return;
  }
  const bool is_far_memory = is_far(info->si_addr);
  const bool is_moved_variable = was_moved(info->si_addr);
  if (!is_far_memory && !is_moved_variable && !was_lent(info->si_addr)) return;
  Dl_info place{};
  void* const at = place_of_fault(context);
  const bool is_known = dladdr(at, &place) != 0;
  const char* const function = is_known && place.dli_sname != nullptr ? place.dli_sname : "a function without a name";
  const char* const file = is_known && place.dli_fname != nullptr ? place.dli_fname : "the program";
  char text[1024];
  const int length =
      is_far_memory
          ? std::snprintf(
                text, sizeof text,
                "farheap: cannot touch far memory at %p: in %s of %s, at %p: that code was not translated; compile "
                "it with farcc -ffar=translate-heap, or, if it keeps no pointer, name it with -ffar-borrow=; or give "
                "it "
                "local memory\n",
                info->si_addr, function, file, at)
      : is_moved_variable
          ? std::snprintf(
                text, sizeof text,
                "farheap: cannot touch the variable at %p: in %s of %s, at %p: the variable was moved to the far heap, "
                "and that code was not translated with -ffar-globals, or had its address before it was moved; "
                "compile it with the same options, or name the variable with -ffar-leave=\n",
                info->si_addr, function, file, at)
          : std::snprintf(
                text, sizeof text,
                "farheap: cannot touch what was lent at %p: in %s of %s, at %p: the function that it was lent to "
                "kept the pointer, or went beyond its end; it is none for -ffar-borrow=: compile it with farcc "
                "-ffar=translate-heap\n",
                info->si_addr, function, file, at);
  if (length > 0) (void)!write(STDERR_FILENO, text, std::min<std::size_t>(length, sizeof text - 1));
}

}  // namespace

void explain_faults() {
  struct sigaction now{};
  if (sigaction(SIGSEGV, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction ours{};
  ours.sa_sigaction = explain;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  sigemptyset(&ours.sa_mask);
  (void)sigaction(SIGSEGV, &ours, nullptr);  // without it there are no words, and no other difference
}

}  // namespace farheap::translate
