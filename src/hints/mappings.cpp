// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private anonymous mappings are objects, too: as under the preload library, whose profiles name them so.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>

#include "hints/hint_run.hpp"
#include "preload/caller.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

namespace farheap::hints {

using preload::Caller;

static void* mapped(const Caller& caller, void* wish, size_t bytes, int protection, int flags, int file, off_t offset) {
  HintRun* const hints = hints_now();
  if (hints != nullptr && (flags & MAP_FIXED) != 0) hints->unmapped(wish, bytes);
  void* const at = reinterpret_cast<void*>(syscall(SYS_mmap, wish, bytes, protection, flags, file, offset));
  const bool is_object = (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) != 0 && protection != PROT_NONE;
  if (hints != nullptr && at != MAP_FAILED && is_object) {
    hints->allocated(at, bytes, caller.address, caller.frame);
  }
  return at;
}

}  // namespace farheap::hints

using namespace farheap::hints;

FARHEAP_EXPORT void* mmap(void* wish, size_t bytes, int protection, int flags, int file, off_t offset) {
  return mapped(FARHEAP_CALLER, wish, bytes, protection, flags, file, offset);
}
FARHEAP_EXPORT void* mmap64(void* wish, size_t bytes, int protection, int flags, int file, off_t offset) {
  return mapped(FARHEAP_CALLER, wish, bytes, protection, flags, file, offset);
}

FARHEAP_EXPORT int munmap(void* at, size_t bytes) {
  if (HintRun* const hints = hints_now()) hints->unmapped(at, bytes);
  return static_cast<int>(syscall(SYS_munmap, at, bytes));
}

FARHEAP_EXPORT void* mremap(void* old, size_t old_bytes, size_t bytes, int flags, ...) {
  va_list more;
  va_start(more, flags);
  void* const fixed = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  HintRun* const hints = hints_now();
  if (hints != nullptr) hints->unmapped(old, old_bytes);
  if (hints != nullptr && fixed != nullptr) hints->unmapped(fixed, bytes);
  void* const at = reinterpret_cast<void*>(syscall(SYS_mremap, old, old_bytes, bytes, flags, fixed));
  if (hints != nullptr && at != MAP_FAILED) {
    const Caller caller = FARHEAP_CALLER;
    hints->allocated(at, bytes, caller.address, caller.frame);
  }
  return at;
}
