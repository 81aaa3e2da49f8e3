// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// System calls by an instruction of our own. What the C library offers under a name may be another's: a program may
// define clock_gettime() or syscall(), as libfaketime does, or overwrite mmap(), as libraries for fast networks do.
// What the runtime needs to work then it asks the kernel for here.
//
// Thread-safety: any thread, and signal handlers. No cancellation points.
#pragma once

#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <type_traits>

namespace farheap::base {

// The kernel's own answer: -errno where it refuses.
[[nodiscard]] inline long kernel_answer(long number, long a, long b, long c, long d, long e, long f) noexcept {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}

template <class Word>
[[nodiscard]] long word_of(Word word) noexcept {
  if constexpr (std::is_pointer_v<Word>) {
    return reinterpret_cast<long>(word);
  } else if constexpr (std::is_null_pointer_v<Word>) {
    return 0;
  } else {
    return static_cast<long>(word);
  }
}

// -1, and errno, where the kernel refuses, as syscall() of the C library.
template <class... Words>
long system_call(long number, Words... words) noexcept {
  static_assert(sizeof...(Words) <= 6);
  const long all[6] = {word_of(words)...};
  const long answer = kernel_answer(number, all[0], all[1], all[2], all[3], all[4], all[5]);
  if (answer >= 0 || answer < -4095) return answer;
  errno = static_cast<int>(-answer);
  return -1;
}

// -1 is no descriptor, and stays so.
inline void close_now(int file) noexcept {
  if (file >= 0) system_call(SYS_close, file);
}

}  // namespace farheap::base
