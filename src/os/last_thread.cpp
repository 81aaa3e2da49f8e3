// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/last_thread.hpp"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "base/format_into.hpp"
#include "base/log.hpp"
#include "os/proc_text.hpp"

namespace farheap::os {

namespace {

// At most 15 characters.
constexpr const char* kRuntime = "farheap-runtime";
constexpr const char* kLast = "farheap-last";
constexpr const char* kThreads = "/proc/self/task";
// The kernel's threads for requests of io_uring: they stay as long as the process.
constexpr std::string_view kKernels[] = {"iou-wrk-", "iou-sqp-"};

constexpr long kFirstPauseNs = 10'000'000, kLongestPauseNs = 100'000'000;
// A folder of /proc may leave out who comes or goes while it is read.
constexpr unsigned kLooksThatAgree = 3;

pthread_key_t g_main_ends;
bool g_has_key = false;
sigset_t g_signals_of_main;

std::string_view read_of_thread(const char* thread, const char* what, std::span<char> room) {
  char path[64];
  path[base::format_into({path, sizeof path - 1}, "/proc/self/task/{}/{}", thread, what).size()] = '\0';
  return read_proc_text(path, room);
}

bool has_ended(const char* thread) {
  char room[256];
  const std::string_view stat = read_of_thread(thread, "stat", room);
  const std::size_t name_end = stat.rfind(") ");
  return name_end != std::string_view::npos && stat.substr(name_end + 2, 1).find_first_of("ZX") == 0;
}

// One of the program's that may go on. Of several that wait for the last one, the first ends the process.
bool is_programs(const char* thread, const char* own) {
  if (std::strcmp(thread, own) == 0) return false;
  char room[32];
  std::string_view name = read_of_thread(thread, "comm", room);
  name = name.substr(0, name.find('\n'));
  if (name == kRuntime || std::ranges::any_of(kKernels, [name](auto of) { return name.starts_with(of); })) return false;
  if (name == kLast) return std::atoi(thread) < std::atoi(own);
  return !has_ended(thread);
}

// True also where that cannot be seen.
bool has_others(const char* own) {
  return look_through(kThreads, [own](const char* thread) { return is_programs(thread, own); }) != Look::kNone;
}

void print_own_number(std::span<char> into) {
  into[base::format_into(into.first(into.size() - 1), "{}", syscall(SYS_gettid)).size()] = '\0';
}

// No thread of the runtime: it runs what the program has for its end.
void* end_after_the_last(void*) {
  char before[16] = {};
  prctl(PR_GET_NAME, before);
  prctl(PR_SET_NAME, kLast);
  char own[24];
  print_own_number(own);
  timespec pause = {0, kFirstPauseNs};
  for (unsigned agree = 0; agree < kLooksThatAgree;) {
    nanosleep(&pause, nullptr);
    const bool others = has_others(own);
    agree = others ? 0 : agree + 1;
    pause.tv_nsec = others ? std::min(pause.tv_nsec + kFirstPauseNs, kLongestPauseNs) : kFirstPauseNs;
  }
  // From here on it is the program's: a child that is forked in its last words has threads of that name, too.
  prctl(PR_SET_NAME, before);
  pthread_sigmask(SIG_SETMASK, &g_signals_of_main, nullptr);
  exit(0);
}

// Takes no signals while it waits: the main thread would take none any more.
void start_the_last() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &g_signals_of_main);
  pthread_t last;
  const int error = pthread_create(&last, nullptr, end_after_the_last, nullptr);
  pthread_sigmask(SIG_SETMASK, &g_signals_of_main, nullptr);
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

// The last round of the main thread's destructors, so that those of the program have run. If it is the last thread,
// the C library would end the process in it.
void main_ends(void* round) {
  if (syscall(SYS_gettid) != getpid()) return;  // of a fork that nobody told of
  const auto number = reinterpret_cast<std::uintptr_t>(round);
  if (number < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(g_main_ends, reinterpret_cast<void*>(number + 1));
    return;
  }
  if (access(kThreads, R_OK) != 0) return;  // without /proc the C library alone decides
  char own[24];
  print_own_number(own);
  for (unsigned agree = 0; agree < kLooksThatAgree; ++agree) {
    if (has_others(own)) return start_the_last();
  }
  exit(0);
}

// The library's constructors run in the main thread, unless a plugin brings it.
__attribute__((constructor)) void begin() {
  g_has_key = pthread_key_create(&g_main_ends, main_ends) == 0;
  if (syscall(SYS_gettid) == getpid()) this_is_the_main_thread();
}

// For plugins that are closed.
__attribute__((destructor)) void end() {
  if (g_has_key) pthread_key_delete(g_main_ends);
}

}  // namespace

void this_is_the_main_thread() {
  if (g_has_key) pthread_setspecific(g_main_ends, reinterpret_cast<void*>(std::uintptr_t{1}));
}

void name_runtime_thread() { prctl(PR_SET_NAME, kRuntime); }

}  // namespace farheap::os
