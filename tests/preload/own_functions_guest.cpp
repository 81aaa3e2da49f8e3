// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program with functions of the C library's names: a malloc() that counts, and calls that must not come from inside
// of Farheap: another time (a day passes in every second), waits that do not wait, locks that forbid it. It is paged,
// with threads and a fork, and its data stays right.
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

extern "C" void* __libc_malloc(size_t);  // NOLINT(bugprone-reserved-identifier)

namespace {

constexpr size_t kBytes = size_t{64} << 20;
constexpr long kDay = 86400;
std::atomic<long> g_allocated;
uintptr_t g_library, g_library_end;  // of Farheap; none in a plain run

void say(const char* text) { syscall(SYS_write, STDERR_FILENO, text, strlen(text)); }

void refuse_runtime(const void* caller, const char* name) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  if (at < g_library || at >= g_library_end) return;
  say("the runtime called the program's ");
  say(name);
  say("()\n");
  syscall(SYS_exit_group, 5);
}
#define REFUSE_RUNTIME refuse_runtime(__builtin_return_address(0), __func__)

void find_library() {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[4096];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    uintptr_t from = 0, to = 0;
    if (strstr(line, "/libfarheap-preload.so") == nullptr || sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
    if (g_library == 0) g_library = from;
    g_library_end = to;
  }
  if (maps != nullptr) fclose(maps);
}

void fill(uint64_t* words, uint64_t seed) {
  for (size_t i = 0; i < kBytes / 8; ++i) words[i] = (seed << 32) + i;
}

void check(const uint64_t* words, uint64_t seed) {
  for (size_t i = 0; i < kBytes / 8; ++i) {
    if (words[i] == (seed << 32) + i) continue;
    say("a word is wrong\n");
    syscall(SYS_exit_group, 3);
  }
}

void work(uint64_t seed) {
  auto* const words = static_cast<uint64_t*>(malloc(kBytes));
  for (int round = 0; round < 3; ++round) {
    fill(words, seed + static_cast<uint64_t>(round));
    check(words, seed + static_cast<uint64_t>(round));
  }
  free(words);
}

}  // namespace

extern "C" {

void* malloc(size_t bytes) {
  REFUSE_RUNTIME;
  ++g_allocated;
  return __libc_malloc(bytes);
}

// Told that the store's folder is none, and that the files of the run are none.
int stat(const char*, struct stat*) noexcept { return errno = EIO, -1; }
int fstat(int, struct stat*) noexcept { return errno = EIO, -1; }
int clock_gettime(clockid_t clock, timespec* into) noexcept {
  REFUSE_RUNTIME;
  const long answer = syscall(SYS_clock_gettime, clock, into);
  into->tv_sec *= kDay;
  return static_cast<int>(answer);
}
time_t time(time_t* into) noexcept {
  REFUSE_RUNTIME;
  if (into != nullptr) *into = 0;
  return 0;
}
int nanosleep(const timespec*, timespec*) {
  REFUSE_RUNTIME;
  return 0;
}
int usleep(useconds_t) {
  REFUSE_RUNTIME;
  return 0;
}
int poll(pollfd*, nfds_t, int) {
  REFUSE_RUNTIME;
  return 0;
}
ssize_t write(int file, const void* from, size_t bytes) {
  REFUSE_RUNTIME;
  return syscall(SYS_write, file, from, bytes);
}
ssize_t pwrite(int file, const void* from, size_t bytes, off_t offset) {
  REFUSE_RUNTIME;
  return syscall(SYS_pwrite64, file, from, bytes, offset);
}
int sched_yield() noexcept {
  REFUSE_RUNTIME;
  return 0;
}
pid_t getpid() noexcept {
  REFUSE_RUNTIME;
  return 1;
}
int ioctl(int file, unsigned long what, ...) noexcept {
  REFUSE_RUNTIME;
  __builtin_va_list rest;
  __builtin_va_start(rest, what);
  void* const argument = __builtin_va_arg(rest, void*);
  __builtin_va_end(rest);
  return static_cast<int>(syscall(SYS_ioctl, file, what, argument));
}
int pthread_cond_wait(pthread_cond_t*, pthread_mutex_t*) {
  REFUSE_RUNTIME;
  return EINVAL;
}
int pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*) {
  REFUSE_RUNTIME;
  return EINVAL;
}

}  // extern "C"

int main() {
  find_library();
  auto* const words = static_cast<uint64_t*>(malloc(kBytes));
  fill(words, 1);
  std::vector<std::thread> threads;
  for (uint64_t seed = 10; seed < 40; seed += 10) threads.emplace_back(work, seed);
  for (auto& thread : threads) thread.join();
  check(words, 1);
  const pid_t child = fork();
  if (child == 0) {
    check(words, 1);
    work(50);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  check(words, 1);
  free(words);
  printf("the child ended with %d; allocations were counted: %s\n", status, g_allocated > 4 ? "yes" : "no");
  return 0;
}
