// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel's user interface for userfaultfd and pagemap scans as of Linux 6.8, where the system's headers
// (Debian 12: 6.1) stop earlier. Names of our own, so that newer headers do not collide with them; the values
// are the kernel's (include/uapi/linux/userfaultfd.h, fs.h) and never change.
//
// Thread-safety: constants and plain structs.
#pragma once

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace farheap::os::abi {

// ---- features, answered by UFFDIO_API
inline constexpr std::uint64_t kFeatureWp = 1u << 0;  // 5.7: write-protect faults of anonymous memory
inline constexpr std::uint64_t kFeatureEventFork = 1u << 1;
inline constexpr std::uint64_t kFeatureEventRemap = 1u << 2;
inline constexpr std::uint64_t kFeatureEventRemove = 1u << 3;
inline constexpr std::uint64_t kFeatureMissingShmem = 1u << 5;
inline constexpr std::uint64_t kFeatureEventUnmap = 1u << 6;
inline constexpr std::uint64_t kFeatureSigbus = 1u << 7;
inline constexpr std::uint64_t kFeatureThreadId = 1u << 8;
inline constexpr std::uint64_t kFeatureExactAddress = 1u << 11;   // 5.18
inline constexpr std::uint64_t kFeatureWpUnpopulated = 1u << 13;  // 6.4: pages not there yet can be protected
inline constexpr std::uint64_t kFeaturePoison = 1u << 14;         // 6.6
inline constexpr std::uint64_t kFeatureWpAsync = 1u << 15;        // 6.7: the kernel resolves the first write itself
inline constexpr std::uint64_t kFeatureMove = 1u << 16;           // 6.8

// ---- getting one: userfaultfd(2) with flags, or an ioctl on the device file with the same flags
inline constexpr char kDevicePath[] = "/dev/userfaultfd";     // 6.1
inline constexpr unsigned long kDeviceNew = _IO(0xAA, 0x00);  // USERFAULTFD_IOC_NEW; the argument is the flags
inline constexpr int kUserModeOnly = 1;                       // UFFD_USER_MODE_ONLY, 5.11

// ---- UFFDIO_MOVE: takes pages out of one range and puts them into another, atomically and without a copy
struct Move {
  std::uint64_t dst;
  std::uint64_t src;
  std::uint64_t len;
  std::uint64_t mode;
  std::int64_t move;  // answer: bytes moved, or a negative errno
};
inline constexpr unsigned long kMove = _IOWR(0xAA, 0x05, Move);
inline constexpr std::uint64_t kMoveDontWake = 1u << 0;
inline constexpr std::uint64_t kMoveAllowSourceHoles = 1u << 1;

// ---- UFFDIO_POISON: touching the range raises SIGBUS
struct Poison {
  std::uint64_t start;
  std::uint64_t len;
  std::uint64_t mode;
  std::int64_t updated;  // answer: bytes poisoned, or a negative errno
};
inline constexpr unsigned long kPoison = _IOWR(0xAA, 0x08, Poison);
inline constexpr std::uint64_t kPoisonDontWake = 1u << 0;

static_assert(sizeof(Move) == 40 && sizeof(Poison) == 32);
static_assert(kMove == 0xc028aa05 && kPoison == 0xc020aa08);

// ---- PAGEMAP_SCAN on /proc/self/pagemap (6.7)
struct PageRegion {
  std::uint64_t start;
  std::uint64_t end;  // exclusive
  std::uint64_t categories;
};
struct PagemapScan {
  std::uint64_t size;  // sizeof(PagemapScan)
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;  // answer: where the scan stopped
  std::uint64_t vec;       // PageRegion[vec_len]
  std::uint64_t vec_len;
  std::uint64_t max_pages;  // 0: no limit
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
static_assert(sizeof(PageRegion) == 24 && sizeof(PagemapScan) == 96);
inline constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);
inline constexpr std::uint64_t kScanWpMatching = 1u << 0;    // write-protect what matches, atomically
inline constexpr std::uint64_t kScanCheckWpAsync = 1u << 1;  // fail where the range is not registered for WP_ASYNC
inline constexpr std::uint64_t kPageIsWpAllowed = 1u << 0;
inline constexpr std::uint64_t kPageIsWritten = 1u << 1;
inline constexpr std::uint64_t kPageIsFile = 1u << 2;
inline constexpr std::uint64_t kPageIsPresent = 1u << 3;
inline constexpr std::uint64_t kPageIsSwapped = 1u << 4;
inline constexpr std::uint64_t kPageIsZero = 1u << 5;       // PAGE_IS_PFNZERO
inline constexpr std::uint64_t kPageIsHuge = 1u << 6;       // 6.8
inline constexpr std::uint64_t kPageIsSoftDirty = 1u << 7;  // 6.9

}  // namespace farheap::os::abi
