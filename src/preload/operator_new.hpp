// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All forms of operator new, for a library that stands before malloc(). When there is no memory, the C++ library's own
// operator is asked: it calls the program's new handler and throws the program's bad_alloc (this library has a C++
// runtime of its own, whose exceptions must not leave it).
//
// Thread-safety: any thread.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <new>

#include "base/log.hpp"
#include "preload/caller.hpp"

namespace farheap::preload {

// The two functions are malloc() and memalign() on behalf of a caller.
template <void* (*AllocateFor)(const Caller&, std::size_t),
          void* (*AllocateAlignedFor)(const Caller&, std::size_t alignment, std::size_t)>
struct OperatorNew {
  static void* allocate(const Caller& caller, std::size_t bytes) {
    if (void* pointer = AllocateFor(caller, bytes)) [[likely]]
      return pointer;
    return of_the_program<void*(std::size_t)>("_Znwm")(bytes);
  }
  static void* allocate(const Caller& caller, std::size_t bytes, std::align_val_t alignment) {
    if (void* pointer = AllocateAlignedFor(caller, static_cast<std::size_t>(alignment), bytes)) [[likely]]
      return pointer;
    return of_the_program<void*(std::size_t, std::align_val_t)>("_ZnwmSt11align_val_t")(bytes, alignment);
  }
  static void* allocate_or_null(const Caller& caller, std::size_t bytes) noexcept {
    if (void* pointer = AllocateFor(caller, bytes)) [[likely]]
      return pointer;
    return of_the_program<void*(std::size_t, const std::nothrow_t&)>("_ZnwmRKSt9nothrow_t")(bytes, std::nothrow);
  }
  static void* allocate_or_null(const Caller& caller, std::size_t bytes, std::align_val_t alignment) noexcept {
    return AllocateAlignedFor(caller, static_cast<std::size_t>(alignment), bytes);
  }

 private:
  template <class Function>
  static Function* of_the_program(const char* symbol) {
    void* found = dlsym(RTLD_NEXT, symbol);
    if (found == nullptr) base::stop("out of memory in operator new");
    return reinterpret_cast<Function*>(found);
  }
};

}  // namespace farheap::preload

// FORM(name, mangled name, parameters, call) for each; `Source` is an OperatorNew.
#define FARHEAP_FORMS_OF_NEW(FORM, Source)                                                       \
  FORM(operator new, _Znwm, (std::size_t bytes), Source::allocate(FARHEAP_CALLER, bytes))        \
  FORM(operator new, _ZnwmSt11align_val_t, (std::size_t bytes, std::align_val_t at),             \
       Source::allocate(FARHEAP_CALLER, bytes, at))                                              \
  FORM(operator new, _ZnwmRKSt9nothrow_t, (std::size_t bytes, const std::nothrow_t&) noexcept,   \
       Source::allocate_or_null(FARHEAP_CALLER, bytes))                                          \
  FORM(operator new, _ZnwmSt11align_val_tRKSt9nothrow_t,                                         \
       (std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept,                 \
       Source::allocate_or_null(FARHEAP_CALLER, bytes, at))                                      \
  FORM(operator new[], _Znam, (std::size_t bytes), Source::allocate(FARHEAP_CALLER, bytes))      \
  FORM(operator new[], _ZnamSt11align_val_t, (std::size_t bytes, std::align_val_t at),           \
       Source::allocate(FARHEAP_CALLER, bytes, at))                                              \
  FORM(operator new[], _ZnamRKSt9nothrow_t, (std::size_t bytes, const std::nothrow_t&) noexcept, \
       Source::allocate_or_null(FARHEAP_CALLER, bytes))                                          \
  FORM(operator new[], _ZnamSt11align_val_tRKSt9nothrow_t,                                       \
       (std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept,                 \
       Source::allocate_or_null(FARHEAP_CALLER, bytes, at))
