// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All forms of operator new and delete.
#include "preload/operator_new.hpp"

#include "preload/runtime.hpp"

// Each twice: for the program, and hidden for this library's own code, which the linker diverts there (--wrap in
// CMakeLists.txt).
#define FARHEAP_OPERATOR(result, name, mangled, parameters, ...)                                       \
  __attribute__((visibility("default"))) result name parameters { __VA_ARGS__; }                       \
  extern "C" __attribute__((visibility("hidden"))) result __wrap_##mangled parameters { __VA_ARGS__; } \
  static_assert(true)
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name, and a list of parameters
#define FARHEAP_NEW(name, mangled, parameters, call) FARHEAP_OPERATOR(void*, name, mangled, parameters, return call);

extern "C" void free(void*);

using OfTheRuntime =
    farheap::preload::OperatorNew<farheap::preload::allocate_for, farheap::preload::allocate_aligned_for>;

FARHEAP_FORMS_OF_NEW(FARHEAP_NEW, OfTheRuntime)
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
