// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All forms of operator new; what they give is given back by free(). When there is no memory, the C++ library's own
// operator is asked: it calls the program's new handler and throws the program's bad_alloc (this library has a C++
// runtime of its own, whose exceptions must not leave it).
#include <dlfcn.h>

#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "hints/next_malloc.hpp"

#define FARHEAP_OPERATOR(result, name, parameters, ...)                          \
  __attribute__((visibility("default"))) result name parameters { __VA_ARGS__; } \
  static_assert(true)

namespace {

template <class Function>
Function* of_the_program(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) farheap::base::stop("out of memory in operator new");
  return reinterpret_cast<Function*>(found);
}

using farheap::preload::Caller;

inline void* allocate(const Caller& caller, std::size_t bytes) {
  if (void* pointer = farheap::hints::allocate_for(caller, bytes)) [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t)>("_Znwm")(bytes);
}

inline void* allocate(const Caller& caller, std::size_t bytes, std::align_val_t alignment) {
  if (void* pointer = farheap::hints::allocate_aligned_for(caller, static_cast<std::size_t>(alignment), bytes))
      [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t, std::align_val_t)>("_ZnwmSt11align_val_t")(bytes, alignment);
}

inline void* allocate_or_null(const Caller& caller, std::size_t bytes) noexcept {
  if (void* pointer = farheap::hints::allocate_for(caller, bytes)) [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t, const std::nothrow_t&)>("_ZnwmRKSt9nothrow_t")(bytes, std::nothrow);
}

inline void* allocate_or_null(const Caller& caller, std::size_t bytes, std::align_val_t alignment) noexcept {
  return farheap::hints::allocate_aligned_for(caller, static_cast<std::size_t>(alignment), bytes);
}

}  // namespace

FARHEAP_OPERATOR(void*, operator new, (std::size_t bytes), return allocate(FARHEAP_CALLER, bytes));
FARHEAP_OPERATOR(void*, operator new, (std::size_t bytes, std::align_val_t at),
                 return allocate(FARHEAP_CALLER, bytes, at));
FARHEAP_OPERATOR(void*, operator new, (std::size_t bytes, const std::nothrow_t&) noexcept,
                 return allocate_or_null(FARHEAP_CALLER, bytes));
FARHEAP_OPERATOR(void*, operator new, (std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept,
                 return allocate_or_null(FARHEAP_CALLER, bytes, at));
FARHEAP_OPERATOR(void*, operator new[], (std::size_t bytes), return allocate(FARHEAP_CALLER, bytes));
FARHEAP_OPERATOR(void*, operator new[], (std::size_t bytes, std::align_val_t at),
                 return allocate(FARHEAP_CALLER, bytes, at));
FARHEAP_OPERATOR(void*, operator new[], (std::size_t bytes, const std::nothrow_t&) noexcept,
                 return allocate_or_null(FARHEAP_CALLER, bytes));
FARHEAP_OPERATOR(void*, operator new[], (std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept,
                 return allocate_or_null(FARHEAP_CALLER, bytes, at));
