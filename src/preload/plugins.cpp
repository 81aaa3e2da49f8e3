// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plugins that are loaded with RTLD_DEEPBIND look symbols up in the C library before they look here: they would hand
// Farheap's objects to the C library's free(). So they are loaded without it.
#include <dlfcn.h>

extern "C" {

// Read and called by the code below only.
__attribute__((visibility("hidden"))) void* farheap_next_dlopen = nullptr;

__attribute__((visibility("hidden"))) void* farheap_find_dlopen() {
  farheap_next_dlopen = dlsym(RTLD_NEXT, "dlopen");
  return farheap_next_dlopen;
}
}

__attribute__((constructor)) static void start() { (void)farheap_find_dlopen(); }

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
  movq farheap_next_dlopen(%rip), %rax
  testq %rax, %rax
  jne 1f
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call farheap_find_dlopen
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
1:
  jmp *%rax
  .cfi_endproc
  .size dlopen, .-dlopen
  .popsection
)");
