// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fork is a snapshot (DESIGN: forking): the child gets the memory as of the fork and writes its own copy.
//
// The order of locks is that of allocation: program heap and its regions, segment and pager, arena. The pager is at
// rest when the child is made, so what the child inherits of it is whole.
#include <dlfcn.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>

#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "os/own_descriptors.hpp"
#include "os/runtime_threads.hpp"
#include "preload/program_segment.hpp"
#include "preload/runtime.hpp"

// The C library's list of open streams. Its fork() writes to every one of them in the child, before any handler of
// ours could run there: none of them may be out of view by then.
// NOLINTBEGIN(bugprone-reserved-identifier): the C library's own names
extern "C" __attribute__((weak)) FILE* _IO_list_all;
extern "C" __attribute__((weak)) void _IO_list_lock();
extern "C" __attribute__((weak)) void _IO_list_unlock();
// NOLINTEND(bugprone-reserved-identifier)

namespace farheap::preload {

namespace {

using RegisterHandlers = int (*)(void (*)(), void (*)(), void (*)(), void*);

void touch_streams() {
  if (&_IO_list_all == nullptr || _IO_list_lock == nullptr || _IO_list_unlock == nullptr) return;
  _IO_list_lock();
  for (FILE* stream = _IO_list_all; stream != nullptr; stream = stream->_chain) {
    (void)*static_cast<const volatile int*>(&stream->_flags);
    if (stream->_lock != nullptr) (void)*static_cast<const volatile char*>(stream->_lock);
  }
  _IO_list_unlock();
}

// The C library's record of where names are looked up: in a program with threads its fork() reads that after our
// handler, when nobody can bring it back into view. Looking a database up touches it.
using NameDatabase = bool (*)(int database, void** actions);
NameDatabase g_name_database = nullptr;

// A new thread looks its character classes up in the global locale, which may be an object of the program's heap: the
// first threads of the child do, before anybody can serve a fault.
void touch_global_locale() {
  const locale_t before = uselocale(LC_GLOBAL_LOCALE);
  for (const nl_item item : {_NL_CTYPE_CLASS, _NL_CTYPE_TOUPPER, _NL_CTYPE_TOLOWER}) (void)nl_langinfo(item);
  uselocale(before);
}

void renew_threads() {
  base::InsideRuntime inside;
  if (Status renewed = os::renew_threads_in_child(); !renewed) base::stop(renewed.error().message());
}

// Between the handlers of others and the fork itself, which an allocator that the program brings may spend with all of
// its locks held.
void before_fork() { before_fork_on(nullptr); }

RegisterHandlers library_register() {
  static const auto found = reinterpret_cast<RegisterHandlers>(dlsym(RTLD_NEXT, "__register_atfork"));
  if (found == nullptr) base::stop("cannot watch forks: the C library has no __register_atfork");
  return found;
}

// Before those of anybody else, so that ours are the last to run before a fork and the first after it: the handlers of
// others touch the heap.
int register_handlers() {
  static const int result = library_register()(before_fork, after_fork_in_parent, after_fork_in_child, nullptr);
  return result;
}

}  // namespace

// Not analysed, with the next two: what one locks another one unlocks.
void before_fork_on(const void* stack) FARHEAP_NO_THREAD_SAFETY_ANALYSIS {
  if (g_runtime.load() == nullptr) return;
  Runtime& all = *g_runtime.load();
  all.segment->pause_eviction();
  if (all.segment->is_paging()) {
    touch_streams();
    touch_name_databases();
    touch_global_locale();
    os::touch_books_of_threads();
    // The C library writes to the child's stack, and the child does, before it has handlers.
    if (stack != nullptr) all.segment->touch_stack(stack);
  }
  lock_break_for_fork();
  all.program->lock_for_fork();
  if (all.regions) all.regions->lock_for_fork();
  all.segment->lock_for_fork();
  all.arena.lock_for_fork();
  all.arena_space.lock_for_fork();
}

void after_fork_in_parent() FARHEAP_NO_THREAD_SAFETY_ANALYSIS {
  if (g_runtime.load() == nullptr) return;
  Runtime& all = *g_runtime.load();
  all.arena_space.unlock_after_fork();
  all.arena.unlock_after_fork_parent();
  all.segment->unlock_in_parent();
  if (all.regions) all.regions->unlock_after_fork_parent();
  all.program->unlock_after_fork_parent();
  unlock_break_after_fork();
}

void after_fork_in_child() FARHEAP_NO_THREAD_SAFETY_ANALYSIS {
  if (g_runtime.load() == nullptr) return;
  Runtime& all = *g_runtime.load();
  all.arena_space.unlock_after_fork();
  all.arena.unlock_after_fork_child();
  if (all.recorder) {
    base::InsideRuntime inside;
    all.recorder->begin_in_child();
  }
  all.attached.leave_to_parent();
  if (all.plan) {  // the child goes its own way
    g_observer.store(nullptr);
    g_planned_regions.store(nullptr);
    if (all.region_watch) all.segment->leave_observer_to_parent();
  }
  os::leave_parents_descriptors();
  all.run_page->counters.processes.fetch_add(1);
  renew_threads();
  all.segment->unlock_in_child();
  if (all.regions) all.regions->unlock_after_fork_child();
  all.program->unlock_after_fork_child();
  unlock_break_after_fork();
}

void touch_name_databases() {
  void* actions = nullptr;
  if (g_name_database != nullptr) (void)g_name_database(0, &actions);
}

void watch_forks() {
  g_name_database = reinterpret_cast<NameDatabase>(dlsym(RTLD_DEFAULT, "__nss_database_get"));
  if (register_handlers() != 0) base::stop("cannot watch forks: __register_atfork failed");
}

}  // namespace farheap::preload

// What pthread_atfork() calls.
FARHEAP_EXPORT int __register_atfork(void (*before)(), void (*parent)(), void (*child)(), void* library) {  // NOLINT
  const int failed = farheap::preload::register_handlers();
  return failed != 0 ? failed : farheap::preload::library_register()(before, parent, child, library);
}
