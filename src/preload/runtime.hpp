// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `farheap run` loads into a program: two heaps and what they stand on.
//
//   program heap   over the paged segment: what malloc() and mmap() of the program give; with a plan it may have heaps
//                  beside it, for small objects that belong together
//   arena          over plain memory: what the runtime's own code allocates, so that it never waits for itself
//
// Comes to life at the first call, which is usually before main and before any constructor.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>

#include "base/inside_runtime.hpp"
#include "base/options.hpp"
#include "base/run_page.hpp"
#include "heap/heap.hpp"
#include "heap/heap_regions.hpp"
#include "plan/planned_run.hpp"
#include "plan/region_watch.hpp"
#include "preload/attached_recording.hpp"
#include "preload/caller.hpp"
#include "profile/recorder.hpp"
#include "segment/paged_segment.hpp"
#include "segment/plain_space.hpp"

namespace farheap::preload {

struct Runtime {
  segment::PlainSpace arena_space;
  heap::Heap arena;
  base::Options options;
  base::RunPage* run_page = nullptr;
  std::unique_ptr<segment::PagedSegment> segment;
  std::unique_ptr<profile::Recorder> recorder;  // of a run that is recorded
  std::unique_ptr<plan::PlannedRun> plan;       // of a run that has a plan
  std::unique_ptr<heap::HeapRegions> regions;   // where the plan sorts small objects
  std::unique_ptr<plan::RegionWatch> region_watch;
  AttachedRecording attached{*this};
  heap::Heap* program = nullptr;
  std::uintptr_t loader = 0;  // where ld.so lies
  std::uintptr_t loader_bytes = 0;

  Runtime();
};

extern std::atomic<Runtime*> g_runtime;  // null until it is whole
// Whoever hears of allocations; null: nobody.
extern std::atomic<profile::AllocationObserver*> g_observer;

// Heaps that objects lie in beside the program's; null: none.
extern std::atomic<heap::HeapRegions*> g_regions;
// Which of them an object is for; null: none of them, from now on.
extern std::atomic<plan::PlannedRegions*> g_planned_regions;

// The runtime, made if need be. During its making the thread that makes it gets nullptr.
[[nodiscard]] Runtime* make_runtime();
[[nodiscard]] inline Runtime* runtime() {
  Runtime* made = g_runtime.load(std::memory_order_acquire);
  return made != nullptr ? made : make_runtime();
}

[[nodiscard]] inline profile::AllocationObserver* observer_now() { return g_observer.load(std::memory_order_relaxed); }

[[nodiscard]] inline heap::HeapRegions* regions_now() { return g_regions.load(std::memory_order_acquire); }

// What malloc() and memalign() do, for who is called in their place: `caller` is the program's.
[[nodiscard]] void* allocate_for(const Caller& caller, std::size_t bytes);
[[nodiscard]] void* allocate_aligned_for(const Caller& caller, std::size_t alignment, std::size_t bytes);

// The heap for this call: the arena for runtime code, else the program's.
[[nodiscard]] inline heap::Heap& heap_now(Runtime& runtime) {
  return base::t_inside_runtime ? runtime.arena : *runtime.program;
}
[[nodiscard]] inline bool is_loader(const Runtime& runtime, const void* code) {
  return reinterpret_cast<std::uintptr_t>(code) - runtime.loader < runtime.loader_bytes;
}
// The arena alone exists while the rest is being made.
[[nodiscard]] heap::Heap& early_arena();

void watch_forks();
// Around a fork that runs no handlers; the child begins on this stack, if it is not null.
void before_fork_on(const void* stack);
void after_fork_in_parent();
void after_fork_in_child();
void lock_break_for_fork();
void unlock_break_after_fork();
// Reads the C library's record of where names are looked up.
void touch_name_databases();
// kUnavailable: the program is one of those (foreign_malloc.cpp), and the store would hang it.
[[nodiscard]] Status prepare_for_foreign_malloc(Runtime& runtime);
void watch_quick_exit();

}  // namespace farheap::preload
