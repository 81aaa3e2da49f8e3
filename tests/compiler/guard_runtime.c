/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Stands for the runtime where guards are tested: every page of every address is away, always, and bringing one ruins
 * all registers that a function may ruin. Says at the end how often it was called.
 *
 * Invariant: the table of what is away is filled with ones where it is read. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "farheap/residency.h"

static const uintptr_t kAllBytes = (uintptr_t)1 << 47;
static unsigned char* g_table;
static _Atomic unsigned long g_fetches;
static unsigned long g_views, g_gone;

static void fill_page(int number, siginfo_t* info, void* context) {
  (void)context;
  unsigned char* const at = (unsigned char*)((uintptr_t)info->si_addr & ~(uintptr_t)4095);
  if (at < g_table || at >= g_table + (kAllBytes >> 12)) {
    signal(number, SIG_DFL); /* the program's own mistake */
    return;
  }
  mprotect(at, 4096, PROT_READ | PROT_WRITE);
  memset(at, 1, 4096);
}

void __farheap_residency(struct farheap_residency* view) {
  if (g_table == NULL) {
    void* const table = mmap(NULL, kAllBytes >> 12, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) return;
    g_table = table;
    struct sigaction action = {.sa_sigaction = fill_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
  }
  ++g_views;
  view->away = g_table;
  __atomic_store_n(&view->begin, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&view->bytes, kAllBytes, __ATOMIC_RELEASE);
}

void __farheap_residency_gone(struct farheap_residency* view) {
  (void)view;
  ++g_gone;
}

static void ruin_vectors(void) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) {
    __asm__ volatile(
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
        "vpternlogd $0xff, %%zmm\\n, %%zmm\\n, %%zmm\\n\n\t"
        ".endr\n\t"
        ".irp n, 1,2,3,4,5,6,7\n\t"
        "kxnorw %%k\\n, %%k\\n, %%k\\n\n\t"
        ".endr" ::
            : "memory");
  } else if (__builtin_cpu_supports("avx2")) {
    __asm__ volatile(
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
        "vpcmpeqd %%ymm\\n, %%ymm\\n, %%ymm\\n\n\t"
        ".endr" ::
            : "memory");
  } else {
    __asm__ volatile(
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
        "pcmpeqd %%xmm\\n, %%xmm\\n\n\t"
        ".endr" ::
            : "memory");
  }
}

void __farheap_fetch(const void* address, unsigned write) {
  (void)address, (void)write;
  ++g_fetches;
  ruin_vectors();
  __asm__ volatile(
      "fninit\n\t"
      ".irp n, rax,rcx,rdx,rsi,rdi,r8,r9,r10,r11\n\t"
      "movq $-1, %%\\n\n\t"
      ".endr" ::
          : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory");
}

__attribute__((destructor)) static void say(void) {
  fprintf(stderr, "hook called %lu times\n%lu views, %lu gone\n", (unsigned long)g_fetches, g_views, g_gone);
}
