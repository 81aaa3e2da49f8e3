// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs whose executable defines malloc() (jemalloc linked in): theirs wins over ours, also for what the C library
// allocates. Such a malloc() holds locks while it asks mmap() for memory, and there paging starts; or the program
// forks, and it holds all of them. So nothing may be allocated by the C library from then on: what makes it allocate is
// done here, when the program starts.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>

#include "os/runtime_threads.hpp"
#include "pager/fault_loop.hpp"
#include "preload/runtime.hpp"
#include "store/kinds.hpp"

// Those that the program finds; this library's own names lead elsewhere (own_calls.cpp).
extern "C" void* __real_calloc(size_t, size_t);  // NOLINT(bugprone-reserved-identifier)

namespace farheap::preload {

// What the loader and the C library call. In an executable with a fixed address it may be a detour to ours: a symbol
// that has a value and no section.
static bool brings_its_own_malloc() {
  void* const program = dlopen(nullptr, RTLD_LAZY);  // RTLD_DEFAULT is this library first, because of -Bsymbolic
  void* const found = program != nullptr ? dlsym(program, "calloc") : nullptr;
  if (found == nullptr || found == reinterpret_cast<void*>(&__real_calloc)) return false;
  Dl_info library;
  const ElfW(Sym)* symbol = nullptr;
  if (dladdr1(found, &library, const_cast<void**>(reinterpret_cast<const void**>(&symbol)), RTLD_DL_SYMENT) == 0) {
    return true;
  }
  return symbol == nullptr || symbol->st_shndx != SHN_UNDEF;
}

Status prepare_for_foreign_malloc(Runtime& runtime) {
  if (!brings_its_own_malloc()) return {};
  base::InsideRuntime inside;
  if (store::allocates_through_a_library(runtime.options.store)) {
    return fail(ErrorCode::kUnavailable, "cannot run a program with a malloc() of its own",
                program_invocation_short_name,
                "the library behind the store " + runtime.options.store + " would call it, from within it",
                "use the store file:DIR");
  }
  touch_name_databases();
  constexpr unsigned kOfTheStore = 2;                       // store/redis/heart.hpp, names_of_hosts.hpp
  const unsigned of_the_sample = runtime.recorder ? 1 : 0;  // Paging::watch_sample
  const unsigned of_the_plan = runtime.plan ? 1 : 0;        // Paging::tell_order
  const unsigned of_regions = runtime.region_watch ? 1 : 0;
  constexpr unsigned kForRecorders = 1;  // AttachedRecording::run
  return os::keep_threads_waiting(
      kOfTheStore + kForRecorders + of_the_sample + of_the_plan + of_regions +
      pager::FaultLoop::threads({.most_handlers = segment::handlers_for(
                                     runtime.options.handlers, segment::fault_queues_for(runtime.options.fault_queues)),
                                 .readers = segment::PagedSegment::kReaders,
                                 .evictors = segment::evictors_for(runtime.options.evictors, runtime.options.store)}));
}

}  // namespace farheap::preload
