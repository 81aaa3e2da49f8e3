// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forks that pass the C library's handlers by: _Fork(), clone() and syscall(). And what else a program may ask of the
// kernel through syscall() that is about the heap or the runtime's descriptors.
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system_call.hpp"
#include "preload/next_function.hpp"
#include "preload/program_calls.hpp"
#include "preload/program_segment.hpp"
#include "preload/runtime.hpp"

using namespace farheap::preload;

namespace {

using CloneBody = int (*)(void*);
constinit NextFunction<pid_t()> g_fork("_Fork");
constinit NextFunction<int(CloneBody, void*, int, void*, ...)> g_clone("clone");

__attribute__((constructor)) void start() { look_up(g_fork, g_clone); }

// What a fork does not do here. The parent would wait for the child with the locks of the fork, and the child for them
// (CLONE_VFORK). The child renews the runtime's descriptors, and must not close the parent's (CLONE_FILES).
constexpr uint64_t kLeftOut = CLONE_VFORK | CLONE_FILES;

template <class Fork>
auto forked(Fork fork_now, const void* stack = nullptr) {
  before_fork_on(stack);
  const auto child = fork_now();
  const int why = errno;
  child == 0 ? after_fork_in_child() : after_fork_in_parent();
  errno = why;
  return child;
}

using farheap::base::system_call;

// A child on another stack cannot come back from here.
long clone3_as_fork(const clone_args& wanted, long bytes) {
  clone_args args = wanted;
  args.flags &= ~kLeftOut;
  return forked([&] { return system_call(SYS_clone3, &args, bytes); });
}

struct Start {
  int (*body)(void*);
  void* argument;
};

// The C library would end this thread alone, and those of the runtime would stay.
int begin_child(void* start) {
  const Start mine = *static_cast<Start*>(start);
  after_fork_in_child();
  end_process(mine.body(mine.argument));
}

template <class T>
T as(long value) {
  return reinterpret_cast<T>(value);
}

}  // namespace

FARHEAP_EXPORT pid_t _Fork() noexcept {
  return forked([] { return g_fork(); });
}

// These two take a variable number of words; on x86-64 they come as if all were there.
extern "C" __attribute__((visibility("default"))) int farheap_clone(CloneBody, void*, int, void*, void*, void*,
                                                                    void*) asm("clone");
int farheap_clone(CloneBody body, void* stack, int flags, void* argument, void* parent, void* tls, void* child) {
  if ((flags & CLONE_VM) != 0 || stack == nullptr || body == nullptr) {
    return g_clone(body, stack, flags, argument, parent, tls, child);
  }
  Start start{body, argument};
  const int done = flags & ~static_cast<int>(kLeftOut);
  return forked([&] { return g_clone(begin_child, stack, done, &start, parent, tls, child); }, stack);
}

extern "C" __attribute__((visibility("default"))) long farheap_syscall(long, long, long, long, long, long,
                                                                       long) asm("syscall");
long farheap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  switch (number) {
    case SYS_fork: return forked([] { return system_call(SYS_fork); });
    case SYS_clone:
      if ((a & CLONE_VM) != 0 || b != 0) break;
      return forked([&] { return system_call(SYS_clone, a & ~static_cast<long>(kLeftOut), 0, c, d, e); });
    case SYS_clone3: {
      const auto* args = as<const clone_args*>(a);
      if (args == nullptr || (args->flags & CLONE_VM) != 0 || args->stack != 0 ||
          static_cast<size_t>(b) > sizeof(clone_args)) {
        break;
      }
      return clone3_as_fork(*args, b);
    }
    case SYS_mmap:
      return reinterpret_cast<long>(program_mmap(as<void*>(a), static_cast<size_t>(b), static_cast<int>(c),
                                                 static_cast<int>(d), static_cast<int>(e), f));
    case SYS_munmap: return program_munmap(as<void*>(a), static_cast<size_t>(b));
    case SYS_mremap:
      return reinterpret_cast<long>(program_mremap(as<void*>(a), static_cast<size_t>(b), static_cast<size_t>(c),
                                                   static_cast<int>(d), as<void*>(e)));
    case SYS_mprotect:
      return program_mprotect(as<void*>(a), static_cast<size_t>(b), static_cast<int>(c),
                              farheap::segment::PagedSegment::kNoKey);
    case SYS_pkey_mprotect:
      return program_mprotect(as<void*>(a), static_cast<size_t>(b), static_cast<int>(c), static_cast<int>(d));
    case SYS_brk: return reinterpret_cast<long>(program_break(as<void*>(a)));
    case SYS_mlock: return program_mlock(as<const void*>(a), static_cast<size_t>(b));
    case SYS_mlock2: return program_mlock2(as<const void*>(a), static_cast<size_t>(b), static_cast<unsigned>(c));
    case SYS_mlockall: return program_mlockall(static_cast<int>(a));
    case SYS_madvise: return program_madvise(as<void*>(a), static_cast<size_t>(b), static_cast<int>(c));
    case SYS_close: return program_close(static_cast<int>(a));
    case SYS_dup2: return program_dup2(static_cast<int>(a), static_cast<int>(b));
    case SYS_dup3: return program_dup3(static_cast<int>(a), static_cast<int>(b), static_cast<int>(c));
    case SYS_close_range:
      return program_close_range(static_cast<unsigned>(a), static_cast<unsigned>(b), static_cast<int>(c));
    default: break;
  }
  return system_call(number, a, b, c, d, e, f);
}
