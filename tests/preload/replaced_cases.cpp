// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that put functions of their own in the place of the C library's, as libraries for fast networks (UCX, Open
// MPI) do: they overwrite the first bytes, wherever the function lies, and go on by syscall().
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cases.hpp"

using namespace cases;

namespace {

std::atomic<int> g_calls;

void* my_mmap(void* wish, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  ++g_calls;
  return reinterpret_cast<void*>(syscall(SYS_mmap, wish, bytes, protection, flags, file, offset));
}
int my_munmap(void* at, std::size_t bytes) {
  ++g_calls;
  return static_cast<int>(syscall(SYS_munmap, at, bytes));
}
void* my_mremap(void* old, std::size_t old_bytes, std::size_t bytes, int flags, void* fixed) {
  ++g_calls;
  return reinterpret_cast<void*>(syscall(SYS_mremap, old, old_bytes, bytes, flags, fixed));
}
int my_madvise(void* at, std::size_t bytes, int advice) {
  ++g_calls;
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}
int my_mprotect(void* at, std::size_t bytes, int protection) {
  ++g_calls;
  return static_cast<int>(syscall(SYS_mprotect, at, bytes, protection));
}
int my_brk(void* wish) {
  ++g_calls;
  return reinterpret_cast<void*>(syscall(SYS_brk, wish)) == wish ? 0 : -1;
}
int my_close(int file) {
  ++g_calls;
  return static_cast<int>(syscall(SYS_close, file));
}
ssize_t my_read(int file, void* into, std::size_t bytes) {
  ++g_calls;
  return syscall(SYS_read, file, into, bytes);
}

// What `name` leads to jumps to `mine` from now on.
template <class Function>
void overwrite(const char* name, Function* mine) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  CHECK(found != nullptr);
  auto* const page = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(found) & ~(kPage - 1));
  CHECK(syscall(SYS_mprotect, page, 2 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
  unsigned char jump[] = {0x49, 0xbb, 0,   0, 0, 0, 0, 0, 0, 0,  // movabs $mine, %r11
                          0x41, 0xff, 0xe3};                     // jmp *%r11
  memcpy(jump + 2, &mine, sizeof mine);
  memcpy(found, jump, sizeof jump);
  CHECK(syscall(SYS_mprotect, page, 2 * kPage, PROT_READ | PROT_EXEC) == 0);
}

char* map(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  return static_cast<char*>(at);
}

void work(std::uint64_t seed) {
  constexpr std::size_t kBytes = 16 * kMebibyte;
  char* at = map(kBytes);
  fill(at, kBytes, seed);
  void* grown = mremap(at, kBytes, 2 * kBytes, MREMAP_MAYMOVE);
  CHECK(grown != MAP_FAILED);
  at = static_cast<char*>(grown);
  push_out();
  CHECK_FILLED(at, kBytes, seed);
  CHECK(all_zero(at + kBytes, kBytes));
  CHECK(madvise(at, kBytes, MADV_DONTNEED) == 0 && all_zero(at, kBytes));
  CHECK(mprotect(at, kBytes, PROT_READ) == 0 && mprotect(at, kBytes, PROT_READ | PROT_WRITE) == 0);
  CHECK(munmap(at, 2 * kBytes) == 0);
}

}  // namespace

CASE(overwritten_functions_go_on_by_syscall) {
  char* const before = map(kLarge);
  fill(before, kLarge, 1);
  void* const break_before = sbrk(0);
  overwrite("mmap", my_mmap);
  overwrite("munmap", my_munmap);
  overwrite("mremap", my_mremap);
  overwrite("madvise", my_madvise);
  overwrite("mprotect", my_mprotect);
  overwrite("brk", my_brk);
  overwrite("close", my_close);
  overwrite("read", my_read);
  work(2);
  CHECK(g_calls >= 6);
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 3; seed < 6; ++seed) threads.emplace_back(work, seed);
  for (auto& thread : threads) thread.join();
  CHECK_FILLED(before, kLarge, 1);
  CHECK(brk(static_cast<char*>(break_before) + kMebibyte) == 0 && brk(break_before) == 0);
  const int child = fork();
  if (child == 0) {
    CHECK_FILLED(before, kLarge, 1);
    work(7);
    _exit(0);
  }
  CHECK(status_of(child) == 0);
  CHECK_FILLED(before, kLarge, 1);
}

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's own names
extern "C" void* __libc_malloc(std::size_t);
extern "C" void __libc_free(void*);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);
extern "C" void* __libc_valloc(std::size_t);
extern "C" void* __libc_pvalloc(std::size_t);
// NOLINTEND(bugprone-reserved-identifier)

// Each gives what the others take.
CASE(the_c_librarys_other_names_of_malloc) {
  std::vector<void*> all;
  for (std::size_t i = 0; i < 64; ++i) {
    void* const some[] = {__libc_malloc(kMebibyte),           __libc_calloc(1, kMebibyte),
                          __libc_realloc(nullptr, kMebibyte), __libc_realloc(malloc(1), kMebibyte),
                          __libc_memalign(64, kMebibyte),     __libc_valloc(kMebibyte),
                          __libc_pvalloc(kMebibyte),          malloc(kMebibyte)};
    CHECK(all_zero(some[1], kMebibyte));
    for (void* one : some) {
      CHECK(one != nullptr);
      fill(one, kMebibyte / 4, all.size());
      all.push_back(one);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK_FILLED(all[i], kMebibyte / 4, i);
    switch (i % 3) {
      case 0: __libc_free(all[i]); break;
      case 1: free(all[i]); break;
      default: free(realloc(all[i], 1)); break;
    }
  }
}
