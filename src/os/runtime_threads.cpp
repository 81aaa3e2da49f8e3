// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/runtime_threads.hpp"

#include <link.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/inside_runtime.hpp"
#include "os/last_thread.hpp"

namespace farheap::os {

namespace {

// Of a length that no program asks for. In a forked child the C library takes the stack of a thread that is not there
// any more for a new one, if it fits: with it come that thread's books, and nothing is allocated.
constexpr std::size_t kStackBytes = (256 + 12) << 10;
constexpr unsigned kMostThreads = 80;

// Where a thread waits for its work.
struct Place {
  ThreadBody body;
  void* argument;
  std::atomic<bool> called;
};
Place g_places[kMostThreads];
unsigned g_wanted = 0;   // that wait, from the start
unsigned g_waiting = 0;  // places [g_called, g_waiting) have a thread that waits
unsigned g_called = 0;

pthread_t g_threads[kMostThreads];  // all that were made
unsigned g_made = 0;

void* wait_for_work(void* place) {
  base::t_inside_runtime = true;
  name_runtime_thread();
  auto& mine = *static_cast<Place*>(place);
  mine.called.wait(false);
  return mine.body(mine.argument);
}

Status make_thread(Place& place) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, wait_for_work, &place);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error == 0) {
    g_threads[g_made++] = thread;
    return {};
  }
  return fail(
      errno_error(error, "cannot start a thread of the runtime", "pthread_create", "raise `ulimit -u` if it is set"));
}

Status make_waiting_thread() {
  if (g_waiting == kMostThreads) {
    return fail(ErrorCode::kInvalidArgument, "cannot start a thread of the runtime", "option handlers",
                "there are too many", "ask for fewer");
  }
  Place& place = g_places[g_waiting];
  place.called.store(false);
  if (Status made = make_thread(place); !made) return made;
  ++g_waiting;
  return {};
}

// Lives on the starter's stack until the thread has taken the other two and says so.
struct Work {
  ThreadBody body;
  void* argument;
  std::atomic<bool> is_begun = false;
};

void* do_work(void* work) {
  base::t_inside_runtime = true;
  name_runtime_thread();
  auto& given = *static_cast<Work*>(work);
  const auto [body, argument] = std::pair(given.body, given.argument);
  given.is_begun.store(true);
  given.is_begun.notify_one();
  return body(argument);
}

void touch(const void* at) { (void)*static_cast<const volatile char*>(at); }

}  // namespace

Status start_runtime_thread(ThreadBody body, void* argument) {
  if (g_called == g_waiting) {
    if (Status made = make_waiting_thread(); !made) return made;
  }
  Place& place = g_places[g_called++];
  place.body = body;
  place.argument = argument;
  place.called.store(true);
  place.called.notify_one();
  return {};
}

Result<pthread_t> start_ending_thread(ThreadBody body, void* argument) {
  Work work{body, argument};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, do_work, &work);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    return fail(
        errno_error(error, "cannot start a thread of the heap", "pthread_create", "raise `ulimit -u` if it is set"));
  }
  // A thread allocates as it starts. The program may fork next, and the allocators of sanitizers are not whole in a
  // child if one of its parent's threads was in them.
  work.is_begun.wait(false);
  return thread;
}

Status keep_threads_waiting(unsigned count) {
  g_wanted = count;
  while (g_waiting < count) {
    if (Status made = make_waiting_thread(); !made) return made;
  }
  return {};
}

Status renew_threads_in_child() {
  this_is_the_main_thread();
  g_waiting = g_called = g_made = 0;
  return keep_threads_waiting(g_wanted);
}

void touch_books_of_threads() {
  // Thread-local storage, x86-64: the second word of a thread's control block points into a table, whose length stands
  // one entry (of two words) before.
  for (unsigned i = 0; i < g_made; ++i) {
    const auto* table = reinterpret_cast<const std::size_t* const*>(g_threads[i])[1];
    const std::size_t entries = *(table - 2);
    touch(table + 2 * entries);
  }
  // What the loader knows of libraries that were opened later.
  constexpr std::size_t kRecordBytes = 1100;  // at the least: it may lie on two pages
  for (const link_map* library = _r_debug.r_map; library != nullptr; library = library->l_next) {
    const auto* record = reinterpret_cast<const char*>(library);
    touch(record);
    touch(record + kRecordBytes);
  }
}

}  // namespace farheap::os
