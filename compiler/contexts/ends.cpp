// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ways in which a program may end, or become another: the profile is written before. Signals that end it are not
// among them, nor is what the C library does inside (abort() of a broken heap).
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <vector>

#include "objects.hpp"
#include "profile_file.hpp"
#include "threads.hpp"

namespace {

using farheap::contexts::write_profile;

void go_on_in_child() {
  farheap::contexts::begin_anew_in_child();
  farheap::contexts::forget_allocations();
  farheap::contexts::name_process(true);
}

__attribute__((constructor)) void begin() {
  farheap::contexts::name_process(false);
  pthread_atfork(farheap::contexts::hold_for_fork, farheap::contexts::let_go_in_parent, go_on_in_child);
}
__attribute__((destructor)) void end() { write_profile(); }

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

[[noreturn]] void end_now(int status) {
  write_profile();
  for (;;) syscall(SYS_exit_group, status);
}

// The words of execl() and its kin, up to and with the nullptr.
std::vector<char*> words_of(const char* first, std::va_list& rest) {
  std::vector<char*> words{const_cast<char*>(first)};
  while (words.back() != nullptr) words.push_back(va_arg(rest, char*));
  return words;
}

}  // namespace

extern "C" {

void _exit(int status) { end_now(status); }
void _Exit(int status) noexcept { end_now(status); }

void quick_exit(int status) noexcept {
  write_profile();
  const auto really = next(&quick_exit, "quick_exit");
  really(status);
  __builtin_unreachable();
}

void abort() noexcept {
  write_profile();
  const auto really = next(&abort, "abort");
  really();
  __builtin_unreachable();
}

// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the C library's
void __assert_fail(const char* assertion, const char* file, unsigned line, const char* function) noexcept {
  write_profile();
  using Fail = void(const char*, const char*, unsigned, const char*);
  next(static_cast<Fail*>(nullptr), "__assert_fail")(assertion, file, line, function);
  __builtin_unreachable();
}

int execve(const char* path, char* const words[], char* const environment[]) noexcept {
  farheap::contexts::write_before_exec();
  return next(&execve, "execve")(path, words, environment);
}

int execv(const char* path, char* const words[]) noexcept { return execve(path, words, environ); }

int execvpe(const char* file, char* const words[], char* const environment[]) noexcept {
  farheap::contexts::write_before_exec();
  using Exec = int(const char*, char* const[], char* const[]);
  return next(static_cast<Exec*>(nullptr), "execvpe")(file, words, environment);
}

int execvp(const char* file, char* const words[]) noexcept { return execvpe(file, words, environ); }

int execl(const char* path, const char* first, ...) noexcept {
  std::va_list rest;
  va_start(rest, first);
  const std::vector<char*> words = words_of(first, rest);
  va_end(rest);
  return execv(path, words.data());
}

int execlp(const char* file, const char* first, ...) noexcept {
  std::va_list rest;
  va_start(rest, first);
  const std::vector<char*> words = words_of(first, rest);
  va_end(rest);
  return execvp(file, words.data());
}

int execle(const char* path, const char* first, ...) noexcept {
  std::va_list rest;
  va_start(rest, first);
  const std::vector<char*> words = words_of(first, rest);
  char* const* const environment = va_arg(rest, char* const*);
  va_end(rest);
  return execve(path, words.data(), environment);
}
}
