// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/last_thread.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/format_into.hpp"
#include "base/log.hpp"

namespace farheap::os {

namespace {

constexpr const char* kThreads = "/proc/self/task";
constexpr long kLookNs = 20'000'000;
constexpr unsigned kLooksPerCount = 10;

// Never more than there are: a thread is counted after it was made, and no more before it is gone. So at worst the end
// comes a look later.
std::atomic<int> g_of_runtime = 0;
pthread_key_t g_main_has_ended;
bool g_has_key = false;
sigset_t g_signals_of_main;

// The main thread that ended is one of them.
int threads_in_all() {
  struct stat status;
  return stat(kThreads, &status) == 0 ? static_cast<int>(status.st_nlink) - 2 : -1;
}

// The kernel's own threads for requests of io_uring: they stay as long as the process, and are nobody's.
bool is_kernels(const char* thread) {
  char path[64];
  path[base::format_into({path, sizeof path - 1}, "/proc/self/task/{}/comm", thread).size()] = '\0';
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
  if (file < 0) return false;
  char name[4] = {};
  const long bytes = syscall(SYS_read, file, name, sizeof name);
  syscall(SYS_close, file);
  return bytes == sizeof name && std::memcmp(name, "iou-", sizeof name) == 0;
}

int threads_of_the_kernel() {
  const int folder = static_cast<int>(syscall(SYS_openat, AT_FDCWD, kThreads, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder < 0) return 0;
  int found = 0;
  alignas(dirent64) char entries[4096];
  for (long bytes; (bytes = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < bytes;) {
      const auto& entry = *reinterpret_cast<const dirent64*>(entries + at);
      if (entry.d_name[0] != '.' && is_kernels(entry.d_name)) ++found;
      at += entry.d_reclen;
    }
  }
  syscall(SYS_close, folder);
  return found;
}

// The program has threads beside the main one, which ended, and this one.
bool has_others(bool count_kernels) {
  const int beside = threads_in_all() - 2 - g_of_runtime.load();
  return beside > 0 && (!count_kernels || beside > threads_of_the_kernel());
}

// No thread of the runtime: it runs what the program has for its end.
void* end_after_the_last(void*) {
  for (unsigned look = 1; has_others(look % kLooksPerCount == 0); ++look) {
    const timespec pause = {0, kLookNs};
    nanosleep(&pause, nullptr);
  }
  pthread_sigmask(SIG_SETMASK, &g_signals_of_main, nullptr);
  exit(0);
}

// Takes no signals while it waits: the main thread would take none any more.
void main_ends(void*) {
  if (syscall(SYS_gettid) != getpid()) return;  // the child of a fork that nobody told of ends in another one
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &g_signals_of_main);
  pthread_t last;
  const int error = pthread_create(&last, nullptr, end_after_the_last, nullptr);
  if (error == 0) {
    pthread_detach(last);
  } else {
    base::log(
        base::LogLevel::kWarn,
        "no thread can be made that sees when the program's last one ends ({}): process {} may not end by itself, "
        "end it by `kill -KILL`",
        std::strerror(error), getpid());
  }
}

void notice_its_end() {
  if (g_has_key) pthread_setspecific(g_main_has_ended, &g_main_has_ended);
}

// The library's constructors run in the main thread, unless a plugin brings it.
__attribute__((constructor)) void begin() {
  g_has_key = pthread_key_create(&g_main_has_ended, main_ends) == 0;
  if (syscall(SYS_gettid) == getpid()) notice_its_end();
}

}  // namespace

void forked_child_has_one_thread() {
  g_of_runtime.store(0);
  notice_its_end();
}

ThreadOfRuntime::ThreadOfRuntime() { g_of_runtime.fetch_add(1); }
ThreadOfRuntime::~ThreadOfRuntime() { g_of_runtime.fetch_sub(1); }

}  // namespace farheap::os
