// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private anonymous mappings of some size become part of the segment, so that programs which bring their own
// allocator (python3's arenas) are paged, too. All other mappings go to the kernel as they are.
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/units.hpp"
#include "preload/runtime.hpp"

#define FARHEAP_EXPORT extern "C" __attribute__((visibility("default")))

using namespace farheap::preload;
using farheap::base::kPageBytes;
using farheap::base::round_up;
using farheap::segment::PagedSegment;

namespace {

constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18

// The segment, if this call comes from the program and the runtime is there.
PagedSegment* program_segment() {
  if (farheap::base::t_inside_runtime) return nullptr;
  Runtime* made = g_runtime.load(std::memory_order_acquire);
  return made != nullptr ? made->segment.get() : nullptr;
}

// The segment, if it holds all of [at, at + bytes).
PagedSegment* segment_of(const void* at, size_t bytes) {
  PagedSegment* segment = program_segment();
  if (segment == nullptr || !segment->contains(at)) return nullptr;
  return bytes <= segment->capacity_bytes() - static_cast<size_t>(static_cast<const std::byte*>(at) - segment->base())
             ? segment
             : nullptr;
}

bool is_paged(const void* wish, size_t bytes, int protection, int flags) {
  constexpr int kPlain = MAP_PRIVATE | MAP_ANONYMOUS;
  constexpr int kHarmless = MAP_NORESERVE;
  return wish == nullptr && (flags & ~kHarmless) == kPlain && protection == (PROT_READ | PROT_WRITE) &&
         bytes >= g_runtime.load(std::memory_order_acquire)->options.mmap_threshold;
}

void* kernel_mmap(void* wish, size_t bytes, int protection, int flags, int file, off_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, wish, bytes, protection, flags, file, offset));
}

bool wraps(size_t bytes) { return bytes > SIZE_MAX - kPageBytes; }

// The kernel is about to put something of its own over a part of the segment.
void make_way(void* at, size_t bytes) {
  PagedSegment* segment = wraps(bytes) ? nullptr : segment_of(at, round_up(bytes, kPageBytes));
  if (segment == nullptr || reinterpret_cast<uintptr_t>(at) % kPageBytes != 0 || bytes == 0) return;
  segment->discard(static_cast<std::byte*>(at), round_up(bytes, kPageBytes));
  segment->note_foreign();
}

void* move_mapping(PagedSegment& segment, std::byte* old, size_t old_bytes, size_t bytes, void* fixed) {
  void* fresh = fixed;
  if (fixed != nullptr) {
    if (segment_of(fixed, bytes) != nullptr) {
      segment.renew(static_cast<std::byte*>(fixed), bytes);
    } else {
      fresh = kernel_mmap(fixed, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      if (fresh == MAP_FAILED) return fresh;
    }
  } else {
    fresh = segment.obtain(bytes, kPageBytes);
    if (fresh == nullptr) {
      errno = ENOMEM;
      return MAP_FAILED;
    }
  }
  // Piece by piece: what was copied is given back before the next piece comes in.
  constexpr size_t kPiece = farheap::base::kHugePageBytes;
  const size_t length = std::min(old_bytes, bytes);
  for (size_t done = 0; done < length; done += kPiece) {
    const size_t piece = std::min(kPiece, length - done);
    memcpy(static_cast<std::byte*>(fresh) + done, old + done, piece);
    segment.discard(old + done, piece);
  }
  segment.unmap(old, old_bytes);
  return fresh;
}

}  // namespace

FARHEAP_EXPORT void* mmap(void* wish, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  PagedSegment* segment = program_segment();
  if (segment != nullptr && !wraps(bytes) && is_paged(wish, bytes, protection, flags)) {
    if (std::byte* at = segment->obtain(round_up(bytes, kPageBytes), kPageBytes)) return at;
  }
  if ((flags & MAP_FIXED) != 0 && bytes != 0 && !wraps(bytes) && reinterpret_cast<uintptr_t>(wish) % kPageBytes == 0) {
    segment = segment_of(wish, round_up(bytes, kPageBytes));
    if (segment != nullptr && (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE) {
      auto* at = static_cast<std::byte*>(wish);
      bytes = round_up(bytes, kPageBytes);
      constexpr int kHarmless = MAP_NORESERVE | MAP_STACK | MAP_POPULATE;
      if ((flags & ~kHarmless) == (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)) {
        segment->renew(at, bytes);  // it stays paged
        return syscall(SYS_mprotect, at, bytes, protection) == 0 ? wish : MAP_FAILED;
      }
      make_way(at, bytes);
    }
  }
  return kernel_mmap(wish, bytes, protection, flags, file, offset);
}
FARHEAP_EXPORT void* mmap64(void* wish, size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return mmap(wish, bytes, protection, flags, file, offset);
}

FARHEAP_EXPORT int munmap(void* at, size_t bytes) noexcept {
  PagedSegment* segment = segment_of(at, bytes);
  if (segment == nullptr) return static_cast<int>(syscall(SYS_munmap, at, bytes));
  if (reinterpret_cast<uintptr_t>(at) % kPageBytes != 0 || bytes == 0) {
    errno = EINVAL;
    return -1;
  }
  segment->unmap(static_cast<std::byte*>(at), round_up(bytes, kPageBytes));
  return 0;
}

FARHEAP_EXPORT void* mremap(void* old, size_t old_bytes, size_t bytes, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* fixed = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  PagedSegment* segment = segment_of(old, old_bytes);
  if (segment == nullptr) {
    if ((flags & MREMAP_MAYMOVE) != 0) make_way(fixed, bytes);
    return reinterpret_cast<void*>(syscall(SYS_mremap, old, old_bytes, bytes, flags, fixed));
  }
  constexpr int kUnderstood = MREMAP_MAYMOVE | MREMAP_FIXED;
  const bool fixed_is_wrong = (flags & MREMAP_FIXED) != 0 &&
                              ((flags & MREMAP_MAYMOVE) == 0 || reinterpret_cast<uintptr_t>(fixed) % kPageBytes != 0);
  if (reinterpret_cast<uintptr_t>(old) % kPageBytes != 0 || bytes == 0 || old_bytes == 0 || wraps(bytes) ||
      (flags & ~kUnderstood) != 0 || fixed_is_wrong) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  auto* at = static_cast<std::byte*>(old);
  old_bytes = round_up(old_bytes, kPageBytes);
  bytes = round_up(bytes, kPageBytes);
  if ((flags & MREMAP_FIXED) != 0) {
    auto* to = static_cast<std::byte*>(fixed);
    if (to < at + old_bytes && at < to + bytes) {  // they overlap
      errno = EINVAL;
      return MAP_FAILED;
    }
    return move_mapping(*segment, at, old_bytes, bytes, fixed);
  }
  if (bytes < old_bytes) segment->unmap(at + bytes, old_bytes - bytes);
  if (bytes <= old_bytes || segment->extend(at, old_bytes, bytes)) return old;
  if ((flags & MREMAP_MAYMOVE) == 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return move_mapping(*segment, at, old_bytes, bytes, nullptr);
}

FARHEAP_EXPORT int madvise(void* at, size_t bytes, int advice) noexcept {
  using farheap::pager::HintKind;
  PagedSegment* segment = segment_of(at, bytes);
  if (segment != nullptr && reinterpret_cast<uintptr_t>(at) % kPageBytes == 0) {
    switch (advice) {
      case MADV_DONTNEED:
      case kDontNeedLocked:
      case MADV_FREE:
        if (bytes == 0) return 0;
        segment->discard(static_cast<std::byte*>(at), round_up(bytes, kPageBytes));
        if (!segment->has_foreign()) return 0;
        break;  // what the program has mapped there is dropped by the kernel
      case MADV_WILLNEED: segment->hint(HintKind::kWillNeed, at, bytes); return 0;
      case MADV_COLD:
      case MADV_PAGEOUT: segment->hint(HintKind::kDoneWith, at, bytes); return 0;
      case MADV_SEQUENTIAL: segment->hint(HintKind::kStream, at, bytes); return 0;
      case MADV_WIPEONFORK:  // the kernel would wipe what is in memory, and the rest would come back from the store
        errno = EINVAL;
        return -1;
      default: break;
    }
  }
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}

// Locked pages stay. The segment as a whole is never locked: it is a terabyte of addresses.
FARHEAP_EXPORT int mlock(const void* at, size_t bytes) noexcept {
  if (PagedSegment* segment = program_segment()) segment->note_locked();
  return static_cast<int>(syscall(SYS_mlock, at, bytes));
}

FARHEAP_EXPORT int mlock2(const void* at, size_t bytes, unsigned flags) noexcept {
  if (PagedSegment* segment = program_segment()) segment->note_locked();
  return static_cast<int>(syscall(SYS_mlock2, at, bytes, flags));
}

FARHEAP_EXPORT int mlockall(int flags) noexcept {
  PagedSegment* segment = program_segment();
  if (segment == nullptr || (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) != 0 || flags == MCL_ONFAULT) {
    return static_cast<int>(syscall(SYS_mlockall, flags));
  }
  segment->note_locked();
  const int result = static_cast<int>(syscall(SYS_mlockall, flags | MCL_ONFAULT));
  segment->unlock_range();
  if (result == 0 || errno != ENOMEM) return result;
  // RLIMIT_MEMLOCK counts the segment's addresses. The program would have been allowed to.
  farheap::base::log(farheap::base::LogLevel::kWarn, "mlockall: nothing is locked; the heap's addresses are too many");
  return 0;
}
