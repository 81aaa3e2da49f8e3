// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// sbrk() and brk(), for allocators that get their memory there: the program's break lies in the segment, at the end of
// what is open of a reservation. What was asked for before the runtime was there stays with the kernel.
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mutex.hpp"
#include "preload/program_calls.hpp"
#include "preload/program_segment.hpp"

using namespace farheap::preload;
using farheap::base::kPageBytes;
using farheap::base::round_up;
using farheap::segment::PagedSegment;

namespace {

constexpr size_t kMostBytes = 32 * farheap::base::kGiB;

farheap::base::Mutex g_mutex;
std::byte* g_first FARHEAP_GUARDED_BY(g_mutex);  // of the reservation; null: not there yet
std::byte* g_break FARHEAP_GUARDED_BY(g_mutex);

// False if there is no room for it.
bool is_reserved(PagedSegment& segment) FARHEAP_REQUIRES(g_mutex) {
  if (g_first == nullptr) g_first = g_break = segment.reserve(kMostBytes);
  return g_first != nullptr;
}

std::byte* page_after(std::byte* at) FARHEAP_REQUIRES(g_mutex) {
  return g_first + round_up(static_cast<size_t>(at - g_first), kPageBytes);
}

// Requires: `wish` lies in the reservation.
bool move_break(PagedSegment& segment, std::byte* wish) FARHEAP_REQUIRES(g_mutex) {
  std::byte* const open_until = page_after(g_break);
  std::byte* const wanted = page_after(wish);
  int why = 0;
  if (wanted > open_until) {
    why = segment.map_over(open_until, static_cast<size_t>(wanted - open_until), PROT_READ | PROT_WRITE);
  } else if (wanted < open_until) {
    why = segment.map_over(wanted, static_cast<size_t>(open_until - wanted), PROT_NONE);
  }
  if (why == 0) g_break = wish;
  return why == 0;
}

bool is_within(const std::byte* at) FARHEAP_REQUIRES(g_mutex) { return at >= g_first && at <= g_first + kMostBytes; }

void* kernel_break(void* wish) { return reinterpret_cast<void*>(syscall(SYS_brk, wish)); }

void* no_break() {
  errno = ENOMEM;
  return reinterpret_cast<void*>(-1);
}

void* kernel_sbrk(intptr_t more) {
  auto* const before = static_cast<std::byte*>(kernel_break(nullptr));
  return more == 0 || kernel_break(before + more) == before + more ? before : no_break();
}

}  // namespace

void farheap::preload::lock_break_for_fork() FARHEAP_ACQUIRE(g_mutex) { g_mutex.lock(); }
void farheap::preload::unlock_break_after_fork() FARHEAP_RELEASE(g_mutex) { g_mutex.unlock(); }

namespace farheap::preload {

static void* program_sbrk(intptr_t more) {
  PagedSegment* const segment = program_segment();
  if (segment == nullptr) return kernel_sbrk(more);
  base::LockGuard lock(g_mutex);
  if (!is_reserved(*segment)) return kernel_sbrk(more);
  std::byte* const before = g_break;
  if (more > static_cast<intptr_t>(kMostBytes) || more < -static_cast<intptr_t>(kMostBytes) ||
      !is_within(before + more) || !move_break(*segment, before + more)) {
    return no_break();
  }
  return before;
}

void* program_break(void* wish) {
  if (PagedSegment* const segment = program_segment()) {
    base::LockGuard lock(g_mutex);
    auto* const at = static_cast<std::byte*>(wish);
    if (is_reserved(*segment) && (at == nullptr || is_within(at))) {
      if (at != nullptr) (void)move_break(*segment, at);
      return g_break;
    }
  }
  return kernel_break(wish);
}

}  // namespace farheap::preload

FARHEAP_EXPORT void* sbrk(intptr_t more) noexcept { return program_sbrk(more); }

// What tcmalloc calls, which has an sbrk() of its own.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
FARHEAP_EXPORT void* __sbrk(intptr_t more) noexcept { return program_sbrk(more); }

FARHEAP_EXPORT int brk(void* wish) noexcept { return program_break(wish) == wish ? 0 : fails_with(ENOMEM); }
