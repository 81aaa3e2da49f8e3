// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private anonymous mappings of some size become part of the segment, so that programs which bring their own
// allocator (python3's arenas, jemalloc, V8, a JVM) are paged, too: what is readable and writable from the start, and
// what is reserved first and opened piece by piece. All other mappings go to the kernel as they are.
#include <linux/magic.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "os/plain_memory.hpp"
#include "preload/program_calls.hpp"
#include "preload/program_segment.hpp"

using namespace farheap::preload;
using farheap::base::kPageBytes;
using farheap::base::round_up;
using farheap::os::PlainMemory;
using farheap::segment::PagedSegment;
using Holding = PagedSegment::Holding;

namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kPlain = MAP_PRIVATE | MAP_ANONYMOUS;
// Larger ones are cages and shadows, of which little is ever opened: they stay plain.
constexpr size_t kLargestReservation = 64 * farheap::base::kGiB;
// A runtime that wishes for memory below it has pointers of 32 bits, and cannot use what lies elsewhere.
constexpr uintptr_t kWishIsNeed = 4 * farheap::base::kGiB;

// Smaller ones with a wish hold code that has to lie near other code. A compiler that gets them elsewhere asks again
// and again: LuaJIT for each trace, and it interprets.
constexpr size_t kWishIsIdle = 128 * farheap::base::kKiB;

void* kernel_mmap(void* wish, size_t bytes, int protection, int flags, int file, off_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, wish, bytes, protection, flags, file, offset));
}

void* mapping_fails_with(int why) {
  errno = why;
  return MAP_FAILED;
}

// Memory, or a reservation, anywhere. nullptr: it is none of the segment's, or there is no room.
void* obtain(PagedSegment& segment, void* wish, size_t bytes, int protection, int flags) {
  if ((flags & ~MAP_NORESERVE) != kPlain || bytes < g_runtime.load()->options.mmap_threshold) return nullptr;
  if (protection != PROT_NONE && protection != kReadWrite) return nullptr;
  if (protection == PROT_NONE && bytes > kLargestReservation) return nullptr;
  if (protection != PROT_NONE && wish != nullptr && reinterpret_cast<uintptr_t>(wish) < kWishIsNeed) return nullptr;
  if (wish != nullptr && bytes < kWishIsIdle && segment_of(wish, bytes) == nullptr) return nullptr;
  auto* at = static_cast<std::byte*>(wish);
  if (is_page(wish) && segment_of(wish, bytes) != nullptr && segment.obtain_at(at, bytes, protection)) return wish;
  return protection == PROT_NONE ? segment.reserve(bytes) : segment.obtain(bytes, kPageBytes);
}

// Whether a private mapping of a file is copied into the segment. Of a large one little may ever be written, and what
// is not, the kernel drops and reads again better than anyone.
bool is_copied(size_t bytes, int protection, int flags, int file, off_t offset) {
  constexpr int kHarmless = MAP_NORESERVE | MAP_POPULATE | MAP_FIXED | MAP_FIXED_NOREPLACE;
  constexpr size_t kLargest = 64 * farheap::base::kMiB;
  if ((flags & ~kHarmless) != MAP_PRIVATE || protection != kReadWrite || file < 0 || offset < 0) return false;
  if (bytes > std::min<size_t>(kLargest, g_runtime.load()->run_page->budget_bytes.load(std::memory_order_relaxed) / 4))
    return false;
  struct stat status;
  struct statfs system;
  // Beyond its end there is nothing, and touching that is to be a signal.
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<size_t>(offset) + bytes <= round_up(static_cast<size_t>(status.st_size), kPageBytes) &&
         fstatfs(file, &system) == 0 && system.f_type != HUGETLBFS_MAGIC;
}

// The pages are there: they become a copy of the file. False: it cannot be read.
bool fill_from_file(PagedSegment& segment, void* at, size_t bytes, int file, off_t offset) {
  void* const shown = kernel_mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, offset);
  if (shown == MAP_FAILED) return false;
  if (segment.copy_file(static_cast<std::byte*>(at), bytes, static_cast<std::byte*>(shown))) return true;
  syscall(SYS_munmap, shown, bytes);
  return false;
}

// Anywhere. nullptr: it is none of the segment's, or the kernel says better what is wrong.
void* map_file(PagedSegment& segment, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (bytes < g_runtime.load()->options.mmap_threshold) return nullptr;
  if (!is_copied(bytes, protection, flags, file, offset)) return nullptr;
  std::byte* const at = segment.obtain(bytes, kPageBytes);
  if (at == nullptr || fill_from_file(segment, at, bytes, file, offset)) return at;
  segment.unmap(at, bytes);
  return nullptr;
}

// Requires: the segment holds all of it, and the flags have MAP_FIXED or MAP_FIXED_NOREPLACE.
void* map_over(PagedSegment& segment, void* wish, size_t bytes, int protection, int flags, int file, off_t offset) {
  auto* at = static_cast<std::byte*>(wish);
  constexpr int kHarmless = MAP_NORESERVE | MAP_STACK | MAP_POPULATE;
  const bool no_replace = (flags & MAP_FIXED_NOREPLACE) != 0;
  const bool plain = (flags & ~(kHarmless | MAP_FIXED | MAP_FIXED_NOREPLACE)) == kPlain;
  if (no_replace) {
    if (!segment.obtain_at(at, bytes, plain ? protection : PROT_NONE)) return mapping_fails_with(EEXIST);
    if (plain) return wish;
  }
  if (plain) {
    const int why = segment.map_over(at, bytes, protection);
    return why == 0 ? wish : mapping_fails_with(why);
  }
  if (is_copied(bytes, protection, flags, file, offset) && segment.map_over(at, bytes, protection) == 0 &&
      fill_from_file(segment, at, bytes, file, offset)) {
    return wish;
  }
  segment.make_way(at, bytes);
  return kernel_mmap(wish, bytes, protection, (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED, file, offset);
}

// What lay there has another one in its place.
void tell_gone(const void* at, size_t bytes) {
  if (farheap::profile::AllocationObserver* const observer = observer_now()) observer->unmapped(at, bytes);
}

// Where the pages of a mapping are to go: `fixed`, or anywhere. MAP_FAILED with errno.
void* place_for(PagedSegment& segment, size_t bytes, void* fixed, int protection) {
  if (fixed != nullptr && segment_of(fixed, bytes) == nullptr) {
    return kernel_mmap(fixed, bytes, protection, kPlain | MAP_FIXED, -1, 0);
  }
  if (fixed != nullptr) {
    tell_gone(fixed, bytes);
    const int why = segment.map_over(static_cast<std::byte*>(fixed), bytes, protection);
    return why == 0 ? fixed : mapping_fails_with(why);
  }
  void* fresh = protection == PROT_NONE ? segment.reserve(bytes) : segment.obtain(bytes, kPageBytes);
  return fresh != nullptr ? fresh : mapping_fails_with(ENOMEM);
}

// Requires: holding is kReserved or kOpen.
void* move_mapping(PagedSegment& segment, std::byte* old, size_t old_bytes, size_t bytes, void* fixed,
                   Holding holding) {
  void* fresh = place_for(segment, bytes, fixed, holding == Holding::kReserved ? PROT_NONE : kReadWrite);
  if (fresh == MAP_FAILED) return fresh;
  // Piece by piece: what was copied is given back before the next piece comes in.
  constexpr size_t kPiece = farheap::base::kHugePageBytes;
  const size_t length = holding == Holding::kReserved ? 0 : std::min(old_bytes, bytes);
  for (size_t done = 0; done < length; done += kPiece) {
    const size_t piece = std::min(kPiece, length - done);
    memcpy(static_cast<std::byte*>(fresh) + done, old + done, piece);
    segment.discard(old + done, piece);
  }
  segment.unmap(old, old_bytes);
  return fresh;
}

// Requires: sizes are multiples of pages, and the pages hold nothing foreign and are all accessible or all reserved.
void* resize_mapping(PagedSegment& segment, std::byte* old, size_t old_bytes, size_t bytes, int flags, void* fixed,
                     Holding holding) {
  if ((flags & MREMAP_FIXED) != 0) return move_mapping(segment, old, old_bytes, bytes, fixed, holding);
  if (bytes < old_bytes) segment.unmap(old + bytes, old_bytes - bytes);
  const int protection = holding == Holding::kReserved ? PROT_NONE : kReadWrite;
  if (bytes <= old_bytes || segment.obtain_at(old + old_bytes, bytes - old_bytes, protection)) return old;
  if ((flags & MREMAP_MAYMOVE) == 0) return mapping_fails_with(ENOMEM);
  return move_mapping(segment, old, old_bytes, bytes, nullptr, holding);
}

bool is_wrong(const std::byte* old, size_t old_bytes, size_t bytes, int flags, const std::byte* fixed) {
  constexpr int kUnderstood = MREMAP_MAYMOVE | MREMAP_FIXED;
  if (!is_page(old) || bytes == 0 || old_bytes == 0 || wraps(bytes) || (flags & ~kUnderstood) != 0) return true;
  if ((flags & MREMAP_FIXED) == 0) return false;
  const bool overlap = fixed < old + round_up(old_bytes, kPageBytes) && old < fixed + round_up(bytes, kPageBytes);
  return (flags & MREMAP_MAYMOVE) == 0 || !is_page(fixed) || overlap;
}

// Plain memory that comes to the segment is copied, and is the segment's from then on. What is small becomes large by
// growing, and what a program puts back must not be a hole in the heap. nullptr: it is not for us.
// Requires: sizes are multiples of pages.
void* adopt_mapping(PagedSegment& segment, std::byte* old, size_t old_bytes, size_t bytes, int flags, void* fixed) {
  const size_t threshold = g_runtime.load()->options.mmap_threshold;
  const bool onto_us = (flags & MREMAP_FIXED) != 0 && segment_of(fixed, bytes) != nullptr;
  const bool grows_large =
      (flags & MREMAP_FIXED) == 0 && (flags & MREMAP_MAYMOVE) != 0 && bytes > old_bytes && bytes >= threshold;
  if (!onto_us && !grows_large) return nullptr;
  if (is_wrong(old, old_bytes, bytes, flags, static_cast<std::byte*>(fixed))) return nullptr;
  const PlainMemory kind = farheap::os::plain_memory(old, old_bytes);
  if (kind == PlainMemory::kNo) return nullptr;
  const bool shut = kind == PlainMemory::kShut;
  // A large reservation stays one: a copy of it would be memory.
  if (shut && (!onto_us || old_bytes >= threshold || syscall(SYS_mprotect, old, old_bytes, kReadWrite) != 0)) {
    return nullptr;
  }
  void* const fresh = place_for(segment, bytes, onto_us ? fixed : nullptr, kReadWrite);
  if (fresh == MAP_FAILED) {
    if (shut) syscall(SYS_mprotect, old, old_bytes, PROT_NONE);
    return grows_large ? nullptr : mapping_fails_with(ENOMEM);
  }
  memcpy(fresh, old, std::min(old_bytes, bytes));
  program_munmap(old, old_bytes);
  if (shut) program_mprotect(fresh, bytes, PROT_NONE, PagedSegment::kNoKey);
  return fresh;
}

void* kernel_mremap(void* old, size_t old_bytes, size_t bytes, int flags, void* fixed) {
  PagedSegment* const segment = program_segment();
  if (segment != nullptr && !wraps(bytes) && !wraps(old_bytes)) {
    const size_t length = round_up(bytes, kPageBytes);
    void* const ours =
        adopt_mapping(*segment, static_cast<std::byte*>(old), round_up(old_bytes, kPageBytes), length, flags, fixed);
    if (ours != nullptr) return ours;
    if ((flags & MREMAP_FIXED) != 0 && is_page(fixed) && segment_of(fixed, bytes) != nullptr) {
      tell_gone(fixed, length);
      segment->make_way(static_cast<std::byte*>(fixed), length);
    }
  }
  return reinterpret_cast<void*>(syscall(SYS_mremap, old, old_bytes, bytes, flags, fixed));
}

}  // namespace

namespace farheap::preload {

// Reservations are not: what is opened of them later has no site.
static void* observed(Caller caller, PagedSegment& segment, void* at, size_t length, int protection) {
  profile::AllocationObserver* const observer = observer_now();
  if (observer == nullptr || at == MAP_FAILED || !segment.contains(at)) return at;
  observer->unmapped(at, length);
  if (protection != PROT_NONE) observer->allocated(at, length, caller.address, caller.frame);
  return at;
}

void* program_mmap(void* wish, size_t bytes, int protection, int flags, int file, off_t offset) {
  PagedSegment* segment = program_segment();
  if (segment == nullptr || bytes == 0 || wraps(bytes)) {
    return kernel_mmap(wish, bytes, protection, flags, file, offset);
  }
  const size_t length = round_up(bytes, kPageBytes);
  const Caller caller = FARHEAP_CALLER;
  const auto ours = [&](void* at) { return observed(caller, *segment, at, length, protection); };
  if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0) {
    if (void* at = obtain(*segment, wish, length, protection, flags)) return ours(at);
    if (void* at = map_file(*segment, length, protection, flags, file, offset)) return ours(at);
  } else if (is_page(wish) && segment_of(wish, length) != nullptr) {
    return ours(map_over(*segment, wish, length, protection, flags, file, offset));
  }
  return kernel_mmap(wish, bytes, protection, flags, file, offset);
}

int program_munmap(void* at, size_t bytes) {
  PagedSegment* segment = segment_of(at, bytes);
  if (segment == nullptr) return static_cast<int>(syscall(SYS_munmap, at, bytes));
  if (!is_page(at) || bytes == 0) return fails_with(EINVAL);
  if (profile::AllocationObserver* const observer = observer_now()) observer->unmapped(at, round_up(bytes, kPageBytes));
  segment->unmap(static_cast<std::byte*>(at), round_up(bytes, kPageBytes));
  return 0;
}

static void* remap(void* old, size_t old_bytes, size_t bytes, int flags, void* fixed) {
  auto* at = static_cast<std::byte*>(old);
  PagedSegment* segment = segment_of(old, old_bytes);
  if (segment == nullptr) return kernel_mremap(old, old_bytes, bytes, flags, fixed);
  if (is_wrong(at, old_bytes, bytes, flags, static_cast<std::byte*>(fixed))) return mapping_fails_with(EINVAL);
  old_bytes = round_up(old_bytes, kPageBytes);
  bytes = round_up(bytes, kPageBytes);
  const Holding holding = segment->holding(at, old_bytes);
  switch (holding) {
    case Holding::kForeign: return kernel_mremap(old, old_bytes, bytes, flags, fixed);
    case Holding::kMixed: return mapping_fails_with(EFAULT);  // several mappings, as the kernel sees it
    case Holding::kReserved:
    case Holding::kOpen: return resize_mapping(*segment, at, old_bytes, bytes, flags, fixed, holding);
    case Holding::kShut: break;
  }
  // It holds something that nobody may read: not even we.
  if (segment->protect(at, old_bytes, kReadWrite) != 0) return mapping_fails_with(EFAULT);
  void* fresh = resize_mapping(*segment, at, old_bytes, bytes, flags, fixed, Holding::kOpen);
  const int why = errno;
  program_mprotect(fresh == MAP_FAILED ? old : fresh, fresh == MAP_FAILED ? old_bytes : bytes, PROT_NONE,
                   PagedSegment::kNoKey);
  errno = why;
  return fresh;
}

void* program_mremap(void* old, size_t old_bytes, size_t bytes, int flags, void* fixed) {
  profile::AllocationObserver* const observer = observer_now();
  PagedSegment* const segment = segment_of(old, old_bytes);
  const bool is_open =
      observer != nullptr && segment != nullptr && is_page(old) && old_bytes != 0 &&
      segment->holding(static_cast<std::byte*>(old), round_up(old_bytes, kPageBytes)) == Holding::kOpen;
  if (!is_open) return remap(old, old_bytes, bytes, flags, fixed);
  observer->unmapped(old, old_bytes);
  void* const at = remap(old, old_bytes, bytes, flags, fixed);
  const Caller caller = FARHEAP_CALLER;
  if (at == MAP_FAILED) {
    observer->allocated(old, old_bytes, caller.address, caller.frame);
  } else {
    observer->allocated(at, bytes, caller.address, caller.frame);
  }
  return at;
}

int program_mprotect(void* at, size_t bytes, int protection, int key) {
  PagedSegment* segment = segment_of(at, bytes);
  constexpr int kUnderstood = PROT_READ | PROT_WRITE | PROT_EXEC;
  const size_t length = wraps(bytes) ? 0 : round_up(bytes, kPageBytes);
  if (segment == nullptr || !is_page(at) || length == 0 || (protection & ~kUnderstood) != 0) {
    return static_cast<int>(key == PagedSegment::kNoKey ? syscall(SYS_mprotect, at, bytes, protection)
                                                        : syscall(SYS_pkey_mprotect, at, bytes, protection, key));
  }
  const int why = segment->protect(static_cast<std::byte*>(at), length, protection, key);
  return why == 0 ? 0 : fails_with(why);
}

}  // namespace farheap::preload

FARHEAP_EXPORT void* mmap(void* wish, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return program_mmap(wish, bytes, protection, flags, file, offset);
}
FARHEAP_EXPORT void* mmap64(void* wish, size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return program_mmap(wish, bytes, protection, flags, file, offset);
}
FARHEAP_EXPORT int munmap(void* at, size_t bytes) noexcept { return program_munmap(at, bytes); }
FARHEAP_EXPORT void* mremap(void* old, size_t old_bytes, size_t bytes, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* fixed = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  return program_mremap(old, old_bytes, bytes, flags, fixed);
}
FARHEAP_EXPORT int mprotect(void* at, size_t bytes, int protection) noexcept {
  return program_mprotect(at, bytes, protection, PagedSegment::kNoKey);
}
FARHEAP_EXPORT int pkey_mprotect(void* at, size_t bytes, int protection, int key) noexcept {
  return program_mprotect(at, bytes, protection, key);
}
