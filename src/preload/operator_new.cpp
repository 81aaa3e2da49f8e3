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

#define FARHEAP_EXPORT __attribute__((visibility("default")))

extern "C" void* malloc(std::size_t);
extern "C" void* memalign(std::size_t, std::size_t);
extern "C" void free(void*);

namespace {

template <class Function>
Function* of_the_program(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) farheap::base::stop("out of memory in operator new");
  return reinterpret_cast<Function*>(found);
}

inline void* allocate(std::size_t bytes) {
  if (void* pointer = malloc(bytes)) [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t)>("_Znwm")(bytes);
}

inline void* allocate(std::size_t bytes, std::align_val_t alignment) {
  if (void* pointer = memalign(static_cast<std::size_t>(alignment), bytes)) [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t, std::align_val_t)>("_ZnwmSt11align_val_t")(bytes, alignment);
}

inline void* allocate_or_null(std::size_t bytes) noexcept {
  if (void* pointer = malloc(bytes)) [[likely]]
    return pointer;
  return of_the_program<void*(std::size_t, const std::nothrow_t&)>("_ZnwmRKSt9nothrow_t")(bytes, std::nothrow);
}

inline void* allocate_or_null(std::size_t bytes, std::align_val_t alignment) noexcept {
  return memalign(static_cast<std::size_t>(alignment), bytes);
}

}  // namespace

FARHEAP_EXPORT void* operator new(std::size_t bytes) { return allocate(bytes); }
FARHEAP_EXPORT void* operator new[](std::size_t bytes) { return allocate(bytes); }
FARHEAP_EXPORT void* operator new(std::size_t bytes, std::align_val_t at) { return allocate(bytes, at); }
FARHEAP_EXPORT void* operator new[](std::size_t bytes, std::align_val_t at) { return allocate(bytes, at); }
FARHEAP_EXPORT void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate_or_null(bytes); }
FARHEAP_EXPORT void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
FARHEAP_EXPORT void* operator new(std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, at);
}
FARHEAP_EXPORT void* operator new[](std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, at);
}

FARHEAP_EXPORT void operator delete(void* pointer) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete[](void* pointer) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete(void* pointer, std::size_t) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete[](void* pointer, std::size_t) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete(void* pointer, std::align_val_t) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete[](void* pointer, std::align_val_t) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete(void* pointer, const std::nothrow_t&) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete[](void* pointer, const std::nothrow_t&) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete(void* pointer, std::align_val_t, const std::nothrow_t&) noexcept { free(pointer); }
FARHEAP_EXPORT void operator delete[](void* pointer, std::align_val_t, const std::nothrow_t&) noexcept {
  free(pointer);
}
