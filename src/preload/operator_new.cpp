// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All forms of operator new and delete. When there is no memory, the C++ library's own operator is asked: it calls
// the program's new handler and throws the program's bad_alloc (this library has a C++ runtime of its own, whose
// exceptions must not leave it).
#include <dlfcn.h>

#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "preload/runtime.hpp"

// Each twice: for the program, and hidden for this library's own code, which the linker diverts there (--wrap in
// CMakeLists.txt).
#define FARHEAP_OPERATOR(result, name, mangled, parameters, ...)                                       \
  __attribute__((visibility("default"))) result name parameters { __VA_ARGS__; }                       \
  extern "C" __attribute__((visibility("hidden"))) result __wrap_##mangled parameters { __VA_ARGS__; } \
  static_assert(true)

extern "C" void free(void*);

namespace {

template <class Function>
Function* of_the_program(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) farheap::base::stop("out of memory in operator new");
  return reinterpret_cast<Function*>(found);
}

using farheap::preload::Caller;

inline void* allocate(const Caller& caller, std::size_t bytes) {
  if (void* pointer = farheap::preload::allocate_for(caller, bytes)) [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t)>("_Znwm")(bytes);
}

inline void* allocate(const Caller& caller, std::size_t bytes, std::align_val_t alignment) {
  if (void* pointer = farheap::preload::allocate_aligned_for(caller, static_cast<std::size_t>(alignment), bytes))
      [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t, std::align_val_t)>("_ZnwmSt11align_val_t")(bytes, alignment);
}

inline void* allocate_or_null(const Caller& caller, std::size_t bytes) noexcept {
  if (void* pointer = farheap::preload::allocate_for(caller, bytes)) [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t, const std::nothrow_t&)>("_ZnwmRKSt9nothrow_t")(bytes, std::nothrow);
}

inline void* allocate_or_null(const Caller& caller, std::size_t bytes, std::align_val_t alignment) noexcept {
  return farheap::preload::allocate_aligned_for(caller, static_cast<std::size_t>(alignment), bytes);
}

}  // namespace

FARHEAP_OPERATOR(void*, operator new, _Znwm, (std::size_t bytes), return allocate(FARHEAP_CALLER, bytes));
FARHEAP_OPERATOR(void*, operator new, _ZnwmSt11align_val_t, (std::size_t bytes, std::align_val_t at),
                 return allocate(FARHEAP_CALLER, bytes, at));
FARHEAP_OPERATOR(void*, operator new, _ZnwmRKSt9nothrow_t, (std::size_t bytes, const std::nothrow_t&) noexcept,
                 return allocate_or_null(FARHEAP_CALLER, bytes));
FARHEAP_OPERATOR(void*, operator new, _ZnwmSt11align_val_tRKSt9nothrow_t,
                 (std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept,
                 return allocate_or_null(FARHEAP_CALLER, bytes, at));
FARHEAP_OPERATOR(void*, operator new[], _Znam, (std::size_t bytes), return allocate(FARHEAP_CALLER, bytes));
FARHEAP_OPERATOR(void*, operator new[], _ZnamSt11align_val_t, (std::size_t bytes, std::align_val_t at),
                 return allocate(FARHEAP_CALLER, bytes, at));
FARHEAP_OPERATOR(void*, operator new[], _ZnamRKSt9nothrow_t, (std::size_t bytes, const std::nothrow_t&) noexcept,
                 return allocate_or_null(FARHEAP_CALLER, bytes));
FARHEAP_OPERATOR(void*, operator new[], _ZnamSt11align_val_tRKSt9nothrow_t,
                 (std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept,
                 return allocate_or_null(FARHEAP_CALLER, bytes, at));
FARHEAP_OPERATOR(void, operator delete, _ZdlPv, (void* pointer) noexcept, free(pointer));
FARHEAP_OPERATOR(void, operator delete, _ZdlPvm, (void* pointer, std::size_t) noexcept, free(pointer));
FARHEAP_OPERATOR(void, operator delete, _ZdlPvSt11align_val_t, (void* pointer, std::align_val_t) noexcept,
                 free(pointer));
FARHEAP_OPERATOR(void, operator delete, _ZdlPvmSt11align_val_t, (void* pointer, std::size_t, std::align_val_t) noexcept,
                 free(pointer));
FARHEAP_OPERATOR(void, operator delete, _ZdlPvRKSt9nothrow_t, (void* pointer, const std::nothrow_t&) noexcept,
                 free(pointer));
FARHEAP_OPERATOR(void, operator delete, _ZdlPvSt11align_val_tRKSt9nothrow_t,
                 (void* pointer, std::align_val_t, const std::nothrow_t&) noexcept, free(pointer));
FARHEAP_OPERATOR(void, operator delete[], _ZdaPv, (void* pointer) noexcept, free(pointer));
FARHEAP_OPERATOR(void, operator delete[], _ZdaPvm, (void* pointer, std::size_t) noexcept, free(pointer));
FARHEAP_OPERATOR(void, operator delete[], _ZdaPvSt11align_val_t, (void* pointer, std::align_val_t) noexcept,
                 free(pointer));
FARHEAP_OPERATOR(void, operator delete[], _ZdaPvmSt11align_val_t,
                 (void* pointer, std::size_t, std::align_val_t) noexcept, free(pointer));
FARHEAP_OPERATOR(void, operator delete[], _ZdaPvRKSt9nothrow_t, (void* pointer, const std::nothrow_t&) noexcept,
                 free(pointer));
FARHEAP_OPERATOR(void, operator delete[], _ZdaPvSt11align_val_tRKSt9nothrow_t,
                 (void* pointer, std::align_val_t, const std::nothrow_t&) noexcept, free(pointer));
