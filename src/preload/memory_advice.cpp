// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// madvise() and the locking of memory, where they are about the segment.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.hpp"
#include "preload/program_calls.hpp"
#include "preload/program_segment.hpp"

using namespace farheap::preload;
using farheap::base::kPageBytes;
using farheap::base::round_up;
using farheap::pager::HintKind;
using farheap::segment::PagedSegment;

namespace {

// Newer than Debian 12's headers.
constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18
constexpr int kCollapse = 25;        // MADV_COLLAPSE, Linux 6.1
constexpr int kGuardInstall = 102;   // MADV_GUARD_INSTALL, Linux 6.13

// True if it is done; false if the kernel has to do it, too. `error` is the errno of advice that is refused.
bool take_advice(PagedSegment& segment, std::byte* at, size_t bytes, int advice, int& error) {
  switch (advice) {
    case MADV_DONTNEED:
    case kDontNeedLocked:
    case MADV_FREE:
      segment.empty(at, bytes);
      if (!segment.show_files(at, bytes)) error = EIO;
      return true;
    case MADV_WILLNEED: segment.hint(HintKind::kWillNeed, at, bytes); return true;
    case MADV_COLD:
    case MADV_PAGEOUT: segment.hint(HintKind::kDoneWith, at, bytes); return true;
    case MADV_SEQUENTIAL: segment.hint(HintKind::kStream, at, bytes); return true;
    case MADV_NORMAL:
      segment.hint(HintKind::kNormal, at, bytes);
      return false;  // MADV_RANDOM is the kernel's
    // Farheap decides on huge pages. And a forked child has all of the segment, or its heap would have holes.
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case kCollapse:
    case MADV_DONTFORK:
    case MADV_DOFORK: return true;
    // What is brought to a page's neighbours would take their guards away. Programs take mprotect() then, as on older
    // kernels.
    case kGuardInstall:
    case MADV_WIPEONFORK:  // the kernel would wipe what is in memory, and the rest would come back from the store
      error = EINVAL;
      return true;
    case MADV_DONTDUMP: segment.note_undumped(); return false;
    default: return false;
  }
}

}  // namespace

namespace farheap::preload {

int program_madvise(void* at, size_t bytes, int advice) {
  PagedSegment* segment = segment_of(at, bytes);
  const size_t length = wraps(bytes) ? 0 : round_up(bytes, kPageBytes);
  auto* first = static_cast<std::byte*>(at);
  if (segment != nullptr && is_page(at) && length != 0) {
    int error = 0;
    if (!segment->is_foreign(first, length)) {
      if (take_advice(*segment, first, length, advice, error)) return error == 0 ? 0 : fails_with(error);
    } else if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == kDontNeedLocked) {
      segment->discard(first, length);  // of the rest; what the program has mapped there is dropped by the kernel
      const int result = static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
      return segment->show_files(first, length) ? result : fails_with(EIO);
    }
  }
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}

// Locked pages stay. The segment as a whole is never locked: it is a terabyte of addresses.
int program_mlock(const void* at, size_t bytes) {
  if (PagedSegment* segment = program_segment()) segment->note_locked();
  return static_cast<int>(syscall(SYS_mlock, at, bytes));
}

int program_mlock2(const void* at, size_t bytes, unsigned flags) {
  if (PagedSegment* segment = program_segment()) segment->note_locked();
  return static_cast<int>(syscall(SYS_mlock2, at, bytes, flags));
}

int program_mlockall(int flags) {
  PagedSegment* segment = program_segment();
  if (segment == nullptr || (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) != 0 || flags == MCL_ONFAULT) {
    return static_cast<int>(syscall(SYS_mlockall, flags));
  }
  segment->note_locked();
  const int result = static_cast<int>(syscall(SYS_mlockall, flags | MCL_ONFAULT));
  segment->unlock_range();
  if (result == 0 || errno != ENOMEM) return result;
  // RLIMIT_MEMLOCK counts the segment's addresses. The program would have been allowed to.
  base::log(base::LogLevel::kWarn, "mlockall: nothing is locked; the heap's addresses are too many");
  return 0;
}

}  // namespace farheap::preload

FARHEAP_EXPORT int madvise(void* at, size_t bytes, int advice) noexcept { return program_madvise(at, bytes, advice); }
FARHEAP_EXPORT int mlock(const void* at, size_t bytes) noexcept { return program_mlock(at, bytes); }
FARHEAP_EXPORT int mlock2(const void* at, size_t bytes, unsigned flags) noexcept {
  return program_mlock2(at, bytes, flags);
}
FARHEAP_EXPORT int mlockall(int flags) noexcept { return program_mlockall(flags); }
