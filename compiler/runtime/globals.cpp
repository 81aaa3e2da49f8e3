// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variables of -ffar-globals. Translated code finds one by a pointer, which is to the local original until a
// constructor of its module calls this. The original is then closed: code that was not translated cannot see in it what
// is no longer so.
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/units.hpp"
#include "cached.hpp"
#include "far.hpp"

namespace farheap::translate {
namespace {

struct Closed {
  const std::byte* begin;
  const std::byte* end;
  const Closed* next;
};

// Only ever grows, at its front, so that a handler of a signal can walk along it.
std::atomic<const Closed*> g_closed{nullptr};

void close(void* original, std::size_t bytes) {
  static std::once_flag explained;
  if (is_cached()) std::call_once(explained, explain_faults);  // direct: done when the heap began
  if (mprotect(original, bytes, PROT_NONE) != 0) {
    die(errno_error(errno, "cannot close a variable that was moved to the far heap", base::format_size(bytes),
                    "leave it where it was with -ffar-leave="));
  }
  auto* const begin = static_cast<const std::byte*>(original);
  auto* const made = new Closed{begin, begin + bytes, g_closed.load()};
  while (!g_closed.compare_exchange_weak(made->next, made)) {
  }
}

}  // namespace

bool was_moved(const void* at) {
  for (const Closed* one = g_closed; one != nullptr; one = one->next) {
    if (at >= one->begin && at < one->end) return true;
  }
  return false;
}

}  // namespace farheap::translate

// NOLINTBEGIN(bugprone-reserved-identifier): names that no program has.
// `own` is the module's original, `original` the one that the program uses: where they differ it is another module's,
// or a copy of the linker's, and stays where it is. `closed_bytes`: whole pages, of nothing else; 0: nobody else knows
// the original.
FARHEAP_ENTRY void __farheap_move(void** pointer, void* original, const void* own, std::size_t bytes,
                                  std::size_t alignment, std::size_t closed_bytes) {
  namespace translate = farheap::translate;
  if (original != own) return;
  void* const far = __farheap_aligned_alloc(alignment, bytes);
  if (far == nullptr) {
    translate::die({farheap::ErrorCode::kNoSpace, "cannot move a variable to the far heap",
                    farheap::base::format_size(bytes), "the far heap is full", "give it a larger store"});
  }
  __farheap_copy(far, original, bytes);
  *pointer = far;
  if (closed_bytes != 0) translate::close(original, closed_bytes);
}
// NOLINTEND(bugprone-reserved-identifier)
