// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a free page that is usable reads as zeros, because pages are dropped before they are noted as free.
#include "segment/plain_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"

namespace farheap::segment {

// Usable memory grows in steps of this, so that mprotect is a rare call and the kernel keeps one mapping.
static constexpr std::size_t kUsableStep = 32 * base::kMiB;

PlainSpace::Reservation::Reservation(std::size_t wanted, HugePages huge_pages) noexcept {
  std::size_t reserved = wanted + base::kHugePageBytes;
  void* at = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    errno_value = errno;
    return;
  }
  auto* first = static_cast<std::byte*>(at);
  std::size_t before =
      (base::kHugePageBytes - reinterpret_cast<std::uintptr_t>(at) % base::kHugePageBytes) % base::kHugePageBytes;
  base = first + before;
  bytes = wanted;
  if (before > 0) munmap(first, before);
  munmap(base + bytes, base::kHugePageBytes - before);
  // Advice only: without huge pages everything is the same but slower. kNo is said too, because a
  // system-wide "always" would make a sparse heap many times larger.
  madvise(base, bytes, MADV_DONTDUMP);
  madvise(base, bytes, huge_pages == HugePages::kAdvise ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

PlainSpace::PlainSpace(std::size_t capacity_bytes, HugePages huge_pages, InCores in_cores) noexcept
    : wanted_bytes_(capacity_bytes),
      in_cores_(in_cores),
      reservation_(capacity_bytes, huge_pages),
      runs_(reservation_.base, reservation_.bytes) {}

PlainSpace::~PlainSpace() {
  if (reservation_.base != nullptr) munmap(reservation_.base, reservation_.bytes);
}

Status PlainSpace::status() const {
  if (reservation_.base != nullptr) return {};
  return fail(errno_error(reservation_.errno_value, "cannot reserve addresses", base::format_size(wanted_bytes_),
                          "see `ulimit -v` and the sysctl vm.overcommit_memory"));
}

bool PlainSpace::make_usable(std::byte* at, std::size_t bytes) noexcept {
  auto end = static_cast<std::size_t>(at + bytes - reservation_.base);
  if (end <= usable_bytes_) return true;
  std::size_t target = std::min(base::round_up(end, kUsableStep), reservation_.bytes);
  if (mprotect(reservation_.base + usable_bytes_, target - usable_bytes_, PROT_READ | PROT_WRITE) != 0) return false;
  if (in_cores_ == InCores::kYes) madvise(reservation_.base + usable_bytes_, target - usable_bytes_, MADV_DODUMP);
  usable_bytes_ = target;
  return true;
}

void PlainSpace::drop(std::byte* at, std::size_t bytes) noexcept {
  if (madvise(at, bytes, MADV_DONTNEED) == 0) return;
  // Locked pages (mlockall) refuse; the promise that they read as zeros is kept by hand.
  std::fill(at, at + bytes, std::byte{0});
}

std::byte* PlainSpace::obtain(std::size_t bytes, std::size_t alignment) {
  base::LockGuard lock(mutex_);
  std::byte* at = runs_.obtain(bytes, alignment);
  if (at == nullptr || make_usable(at, bytes)) return at;
  runs_.give_back(at, bytes);
  return nullptr;
}

void PlainSpace::give_back(std::byte* at, std::size_t bytes) {
  drop(at, bytes);
  base::LockGuard lock(mutex_);
  runs_.give_back(at, bytes);
}

void PlainSpace::discard(std::byte* at, std::size_t bytes) { drop(at, bytes); }

bool PlainSpace::extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) {
  base::LockGuard lock(mutex_);
  if (!runs_.extend(at, bytes, new_bytes)) return false;
  if (make_usable(at, new_bytes)) return true;
  runs_.give_back(at + bytes, new_bytes - bytes);
  return false;
}

}  // namespace farheap::segment
