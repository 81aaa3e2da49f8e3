// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plugins that are loaded with RTLD_DEEPBIND look symbols up in the C library before they look here: they would hand
// Farheap's objects to the C library's free(). So they are loaded without it.
#include <dlfcn.h>

#include "preload/next_function.hpp"

namespace {

constinit farheap::preload::NextFunction<void*(const char*, int)> g_dlopen("dlopen");

__attribute__((constructor)) void start() { look_up(g_dlopen); }

}  // namespace

// For this library's own code (own_calls.cpp).
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" __attribute__((visibility("hidden"))) void* __wrap_dlopen(const char* file, int flags) {
  return g_dlopen(file, flags);
}

// Called by the code below only.
extern "C" __attribute__((visibility("hidden"))) auto* farheap_next_dlopen() { return g_dlopen.get(); }

// dlopen(file, flags & ~RTLD_DEEPBIND). A jump and not a call: the loader goes by the return address to see whose
// search path counts.
static_assert(RTLD_DEEPBIND == 8);
asm(R"(
  .pushsection .text
  .globl dlopen
  .type dlopen, @function
dlopen:
  .cfi_startproc
  endbr64
  andl $~8, %esi
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call farheap_next_dlopen
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dlopen, .-dlopen
  .popsection
)");
