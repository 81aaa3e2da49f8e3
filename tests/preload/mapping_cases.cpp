// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mmap() and its family as programs with allocators of their own use them.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "cases.hpp"

using namespace cases;

namespace {

char* map(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED && reinterpret_cast<std::uintptr_t>(at) % kPage == 0);
  return static_cast<char*>(at);
}

}  // namespace

CASE(map_and_unmap) {
  for (int round = 0; round < 3; ++round) {
    std::vector<char*> pieces;
    for (std::size_t i = 0; i < 48; ++i) {
      pieces.push_back(map(2 * kMebibyte));
      CHECK(all_zero(pieces.back(), 2 * kMebibyte));
      fill(pieces.back(), 2 * kMebibyte, i);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) CHECK_FILLED(pieces[i], 2 * kMebibyte, i);
    for (char* piece : pieces) {
      // Its middle first, then the ends.
      CHECK(munmap(piece + kMebibyte / 2, kMebibyte) == 0);
      CHECK(munmap(piece, kMebibyte / 2) == 0);
      CHECK(munmap(piece + 3 * kMebibyte / 2, kMebibyte / 2) == 0);
    }
  }
}

CASE(dropped_pages_read_as_zeros) {
  char* at = map(8 * kMebibyte);
  fill(at, 8 * kMebibyte, 1);
  push_out();
  CHECK(madvise(at + kMebibyte, kMebibyte, MADV_DONTNEED) == 0);
  fill(at + 3 * kMebibyte, kMebibyte, 2);
  CHECK(madvise(at + 3 * kMebibyte, kMebibyte, MADV_DONTNEED) == 0);
  CHECK(madvise(at + 5 * kMebibyte, 100, MADV_DONTNEED) == 0);  // a page, the length is rounded up
  CHECK(all_zero(at + kMebibyte, kMebibyte) && all_zero(at + 3 * kMebibyte, kMebibyte));
  CHECK(all_zero(at + 5 * kMebibyte, kPage));
  CHECK_FILLED(at, kMebibyte, 1);
  CHECK(*reinterpret_cast<std::uint64_t*>(at + 5 * kMebibyte + kPage) == word(1, (5 * kMebibyte + kPage) / 8));
  push_out();
  CHECK(all_zero(at + kMebibyte, kMebibyte) && all_zero(at + 3 * kMebibyte, kMebibyte));
  errno = 0;
  CHECK(madvise(at + 1, kPage, MADV_DONTNEED) == -1 && errno == EINVAL);
}

// Without the C library, as a program with system calls of its own would: the pager learns of it late.
CASE(dropped_behind_the_librarys_back) {
  char* at = map(8 * kMebibyte);
  fill(at, 8 * kMebibyte, 1);
  CHECK(syscall(SYS_madvise, at, kMebibyte, MADV_DONTNEED) == 0);
  CHECK(all_zero(at, kMebibyte));
  fill(at, kMebibyte / 2, 7);
  push_out();
  CHECK_FILLED(at, kMebibyte / 2, 7);
  CHECK(all_zero(at + kMebibyte / 2, kMebibyte / 2));
  CHECK(*reinterpret_cast<std::uint64_t*>(at + kMebibyte) == word(1, kMebibyte / 8));
}

// The tables said that the pages were in view: each fault was answered by trying again, for ever.
CASE(dropped_behind_the_librarys_back_while_paging) {
  push_out();
  char* at = map(4 * kMebibyte);
  fill(at, 4 * kMebibyte, 1);
  CHECK(syscall(SYS_madvise, at, kMebibyte, MADV_DONTNEED) == 0);
  CHECK(all_zero(at, kMebibyte));
  CHECK(*reinterpret_cast<std::uint64_t*>(at + kMebibyte) == word(1, kMebibyte / 8));
}

CASE(dropped_though_locked_reads_as_zeros) {
  constexpr int kDontNeedLocked = 24;
  char* at = map(8 * kMebibyte);
  fill(at, 8 * kMebibyte, 1);
  push_out();
  CHECK(madvise(at, 4 * kMebibyte, kDontNeedLocked) == 0);
  CHECK(all_zero(at, 4 * kMebibyte));
  CHECK(*reinterpret_cast<std::uint64_t*>(at + 4 * kMebibyte) == word(1, 4 * kMebibyte / 8));
}

CASE(mremap_grows_and_shrinks) {
  std::size_t bytes = 8 * kMebibyte;
  char* at = map(bytes);
  fill(at, bytes, 1);
  push_out();
  at = static_cast<char*>(mremap(at, bytes, 4 * kMebibyte, 0));
  CHECK(at != MAP_FAILED);
  CHECK_FILLED(at, 4 * kMebibyte, 1);
  char* behind = map(kMebibyte);  // in the way, perhaps
  fill(behind, kMebibyte, 3);
  at = static_cast<char*>(mremap(at, 4 * kMebibyte, kLarge, MREMAP_MAYMOVE));
  CHECK(at != MAP_FAILED);
  CHECK_FILLED(at, 4 * kMebibyte, 1);
  CHECK(all_zero(at + 4 * kMebibyte, kLarge - 4 * kMebibyte));
  fill(at, kLarge, 2);
  CHECK_FILLED(behind, kMebibyte, 3);
  at = static_cast<char*>(mremap(at, kLarge, kLarge + kMebibyte, MREMAP_MAYMOVE));
  CHECK_FILLED(at, kLarge, 2);
  CHECK(munmap(at, kLarge + kMebibyte) == 0);
}

CASE(mremap_to_a_fixed_place) {
  char* from = map(4 * kMebibyte);
  fill(from, 4 * kMebibyte, 1);
  char* to = map(4 * kMebibyte);
  fill(to, 4 * kMebibyte, 2);
  push_out();
  CHECK(mremap(from, 4 * kMebibyte, 4 * kMebibyte, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
  CHECK_FILLED(to, 4 * kMebibyte, 1);
  push_out();
  CHECK_FILLED(to, 4 * kMebibyte, 1);
  fill(to, 4 * kMebibyte, 4);
  push_out();
  CHECK_FILLED(to, 4 * kMebibyte, 4);
  CHECK(munmap(to, 4 * kMebibyte) == 0);
  // A place that is no place of the heap's.
  void* outside = mmap(nullptr, kMebibyte, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* again = map(kMebibyte);
  fill(again, kMebibyte, 6);
  CHECK(mremap(again, kMebibyte, kMebibyte, MREMAP_MAYMOVE | MREMAP_FIXED, outside) == outside);
  CHECK_FILLED(outside, kMebibyte, 6);
  errno = 0;
  CHECK(mremap(outside, kMebibyte, kMebibyte, MREMAP_FIXED, to) == MAP_FAILED && errno == EINVAL);
}

// A small mapping is none of the heap's; moved over a part of the heap it stays what it is until it is unmapped. It was
// not noticed: what was in the store came back over it, or what it left was there in the next mapping.
CASE(a_plain_mapping_moved_into_the_heap) {
  constexpr std::size_t kSmall = 64 << 10;
  char* to = map(kMebibyte);
  fill(to, kMebibyte, 1);
  push_out();
  char* small = map(kSmall);
  fill(small, kSmall, 2);
  CHECK(mremap(small, kSmall, kSmall, MREMAP_MAYMOVE | MREMAP_FIXED, to + kSmall) == to + kSmall);
  CHECK_FILLED(to + kSmall, kSmall, 2);
  push_out();
  CHECK_FILLED(to, kSmall, 1);
  CHECK_FILLED(to + kSmall, kSmall, 2);
  CHECK(*reinterpret_cast<std::uint64_t*>(to + 2 * kSmall) == word(1, 2 * kSmall / 8));
  CHECK(madvise(to + kSmall + kPage, kPage, MADV_DONTNEED) == 0);
  CHECK(all_zero(to + kSmall + kPage, kPage) && !all_zero(to + kSmall, kPage));
  // A sweep over fresh pages on both sides passes over it: it does not leave with them.
  char* around = map(8 * kMebibyte);
  char* behind = around + 3 * kMebibyte + 5 * kSmall;
  char* other = map(kSmall);
  fill(other, kSmall, 3);
  CHECK(mremap(other, kSmall, kSmall, MREMAP_MAYMOVE | MREMAP_FIXED, behind) == behind);
  for (char* at = around; at < around + 8 * kMebibyte; at += kPage) {
    if (at < behind || at >= behind + kSmall) fill(at, kPage, 4);
  }
  push_out();
  CHECK_FILLED(behind, kSmall, 3);
  CHECK_FILLED(behind - kPage, kPage, 4);
  CHECK_FILLED(behind + kSmall, kPage, 4);
  CHECK(munmap(around, 8 * kMebibyte) == 0);
  CHECK(munmap(to, kMebibyte) == 0);
  for (int i = 0; i < 12; ++i) CHECK(all_zero(map(kMebibyte), kMebibyte));  // the same addresses, perhaps
}

CASE(mapping_over_a_mapping) {
  char* at = map(8 * kMebibyte);
  fill(at, 8 * kMebibyte, 1);
  // Fresh memory over old: as allocators renew a piece.
  CHECK(mmap(at + kMebibyte, kMebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        at + kMebibyte);
  CHECK(all_zero(at + kMebibyte, kMebibyte));
  fill(at + kMebibyte, kMebibyte, 2);
  push_out();
  CHECK_FILLED(at + kMebibyte, kMebibyte, 2);
  // A file over it.
  char name[] = "/tmp/preload-cases-XXXXXX";
  const int file = mkstemp(name);
  CHECK(file >= 0 && unlink(name) == 0);
  std::vector<std::uint64_t> words(kMebibyte / 8);
  fill(words.data(), kMebibyte, 3);
  CHECK(write(file, words.data(), kMebibyte) == static_cast<ssize_t>(kMebibyte));
  CHECK(mmap(at + 3 * kMebibyte, kMebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) ==
        at + 3 * kMebibyte);
  close(file);
  push_out();
  CHECK_FILLED(at + 3 * kMebibyte, kMebibyte, 3);
  fill(at + 3 * kMebibyte, kMebibyte / 2, 4);
  // Nothing over it, then memory again.
  CHECK(mmap(at + 5 * kMebibyte, kMebibyte, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        at + 5 * kMebibyte);
  CHECK(mprotect(at + 5 * kMebibyte, kMebibyte, PROT_READ | PROT_WRITE) == 0);
  CHECK(all_zero(at + 5 * kMebibyte, kMebibyte));
  fill(at + 5 * kMebibyte, kMebibyte, 5);
  push_out();
  CHECK_FILLED(at, kMebibyte, 1);
  CHECK_FILLED(at + kMebibyte, kMebibyte, 2);
  CHECK_FILLED(at + 3 * kMebibyte, kMebibyte / 2, 4);
  CHECK(*reinterpret_cast<std::uint64_t*>(at + 3 * kMebibyte + kMebibyte / 2) == word(3, kMebibyte / 16));
  CHECK_FILLED(at + 5 * kMebibyte, kMebibyte, 5);
  CHECK(munmap(at, 8 * kMebibyte) == 0);
  for (int i = 0; i < 12; ++i) {  // the same addresses, perhaps
    char* next = map(8 * kMebibyte);
    CHECK(all_zero(next, 8 * kMebibyte));
    fill(next, 8 * kMebibyte, 20 + static_cast<unsigned>(i));
    push_out();
    CHECK_FILLED(next, 8 * kMebibyte, 20 + static_cast<unsigned>(i));
    if (i % 2 == 0) CHECK(munmap(next, 8 * kMebibyte) == 0);
  }
}

// A guard page in a stack or a buffer must not be found by who gets the addresses next.
CASE(protected_then_unmapped) {
  for (int protection : {PROT_NONE, PROT_READ}) {
    char* at = map(4 * kMebibyte);
    fill(at, 4 * kMebibyte, 1);
    push_out();
    CHECK(mprotect(at, kMebibyte, protection) == 0);
    if (protection == PROT_READ) CHECK_FILLED(at, kMebibyte, 1);
    push_out();
    if (protection == PROT_READ) CHECK_FILLED(at, kMebibyte, 1);
    CHECK(munmap(at, 4 * kMebibyte) == 0);
    for (int i = 0; i < 4; ++i) fill(map(4 * kMebibyte), 4 * kMebibyte, 2);
  }
}

CASE(read_only_pages_stay_right) {
  char* at = map(16 * kMebibyte);
  fill(at, 16 * kMebibyte, 1);
  for (std::size_t i = 0; i < 16; i += 2) CHECK(mprotect(at + i * kMebibyte, kMebibyte, PROT_READ) == 0);
  push_out();
  CHECK_FILLED(at, 16 * kMebibyte, 1);
  push_out();
  CHECK(mprotect(at, 16 * kMebibyte, PROT_READ | PROT_WRITE) == 0);
  CHECK_FILLED(at, 16 * kMebibyte, 1);
  fill(at, 16 * kMebibyte, 2);
  push_out();
  CHECK_FILLED(at, 16 * kMebibyte, 2);
}

CASE(unmapping_twice) {
  char* at = map(2 * kMebibyte);
  fill(at, 2 * kMebibyte, 1);
  CHECK(munmap(at, kMebibyte) == 0);
  CHECK(munmap(at, 2 * kMebibyte) == 0);  // half of it is gone already: that is no error
  CHECK(munmap(at, 2 * kMebibyte) == 0);
  push_out();
}

CASE(wrong_mapping_calls) {
  char* at = map(kMebibyte);
  errno = 0;
  CHECK(mmap(nullptr, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
  volatile std::size_t huge = SIZE_MAX;
  for (std::size_t bytes : {std::size_t{huge}, huge - kPage, huge / 2}) {
    errno = 0;
    CHECK(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(mremap(at, kMebibyte, bytes, MREMAP_MAYMOVE) == MAP_FAILED && (errno == ENOMEM || errno == EINVAL));
  }
  errno = 0;
  CHECK(munmap(at + 1, kPage) == -1 && errno == EINVAL);
  errno = 0;
  CHECK(munmap(at, 0) == -1 && errno == EINVAL);
  fill(at, kMebibyte, 1);
  push_out();
  CHECK_FILLED(at, kMebibyte, 1);
}

// It began below what becomes part of the heap, and stayed plain memory however large it grew.
CASE(a_small_mapping_grows_large) {
  std::size_t bytes = 16 << 10;
  char* at = map(bytes);
  fill(at, bytes, 1);
  while (bytes < kLarge) {
    at = static_cast<char*>(mremap(at, bytes, 2 * bytes, MREMAP_MAYMOVE));
    CHECK(at != MAP_FAILED && all_zero(at + bytes, bytes));
    bytes *= 2;
    fill(at, bytes, 1);
  }
  CHECK_FILLED(at, bytes, 1);
  CHECK(munmap(at, bytes) == 0);
}

// As ruby gets its objects: mappings of 32 KiB, of which it keeps the half that lies right. They were not paged, and
// the budget was exceeded.
CASE(many_mappings_of_32_kibibytes) {
  constexpr std::size_t kPiece = 16 << 10;
  std::vector<char*> pieces;
  for (std::size_t i = 0; i < kLarge / kPiece; ++i) {
    char* at = map(2 * kPiece);
    const std::size_t before = (kPiece - reinterpret_cast<std::uintptr_t>(at) % kPiece) % kPiece;
    if (before != 0) CHECK(munmap(at, before) == 0);
    CHECK(munmap(at + before + kPiece, kPiece - before) == 0);
    pieces.push_back(at + before);
    fill(pieces.back(), kPiece, i);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) CHECK_FILLED(pieces[i], kPiece, i);
  for (std::size_t i = 0; i < pieces.size(); i += 2) CHECK(munmap(pieces[i], kPiece) == 0);
  for (std::size_t i = 1; i < pieces.size(); i += 2) CHECK_FILLED(pieces[i], kPiece, i);
}

// As LuaJIT asks for memory for its code, which has to reach the code of its library. It got a place in the heap each
// time, gave it back, and asked again: a run with enough memory took eight times as long.
CASE(a_small_mapping_lies_where_it_is_wished) {
  constexpr std::size_t kSmall = 64 << 10;
  constexpr std::uintptr_t kReach = std::uintptr_t{1} << 31;
  const auto code = reinterpret_cast<std::uintptr_t>(&push_out) / kPage * kPage;
  char* at = nullptr;
  for (std::uintptr_t tries = 1; at == nullptr && tries <= 8; ++tries) {  // something else may lie there
    auto* const wish = reinterpret_cast<void*>(code + tries * (kReach / 16));
    at = static_cast<char*>(mmap(wish, kSmall, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(at != MAP_FAILED);
    if (reinterpret_cast<std::uintptr_t>(at) - code < kReach) break;
    CHECK(munmap(at, kSmall) == 0);
    at = nullptr;
  }
  CHECK(at != nullptr);
  fill(at, kSmall, 1);
  push_out();
  CHECK_FILLED(at, kSmall, 1);
  CHECK(munmap(at, kSmall) == 0);
}

// Small pieces leave the heap by mremap() and come back. They were holes in it afterwards: larger pieces around them
// could not be moved, or lost pages, and what was opened was taken for reserved.
CASE(small_pieces_move_out_and_back) {
  constexpr std::size_t kBytes = 4 * kMebibyte, kPiece = 16 << 10;
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED;
  char* at = map(kBytes);
  fill(at, kBytes, 1);
  push_out();
  for (const int protection : {PROT_READ | PROT_WRITE, PROT_NONE}) {
    char* piece = at + kMebibyte + (protection == PROT_NONE ? kMebibyte : 0);
    CHECK(mprotect(piece, kPiece, protection) == 0);
    char* out = map(kPiece);
    CHECK(mremap(piece, kPiece, kPiece, kMove, out) == out);
    CHECK(mremap(out, kPiece, kPiece, kMove, piece) == piece);
    CHECK(mprotect(piece, kPiece, PROT_READ | PROT_WRITE) == 0);
  }
  CHECK_FILLED(at, kBytes, 1);
  char* larger = map(2 * kMebibyte);
  CHECK(mremap(at + kMebibyte / 2, 2 * kMebibyte, 2 * kMebibyte, kMove, larger) == larger);
  CHECK(mremap(larger, 2 * kMebibyte, 2 * kMebibyte, kMove, at + kMebibyte / 2) == at + kMebibyte / 2);
  push_out();
  CHECK_FILLED(at, kBytes, 1);
}

// A file in the middle of a reservation: what is opened around it was taken for reserved.
CASE(protection_around_a_mapped_file) {
  constexpr std::size_t kBytes = 4 * kMebibyte;
  constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED;
  auto* at = static_cast<char*>(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const int file = memfd_create("file", 0);
  CHECK(ftruncate(file, kMebibyte) == 0);
  CHECK(mmap(at + kMebibyte, kMebibyte, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) == at + kMebibyte);
  CHECK(mprotect(at, kBytes, PROT_READ | PROT_WRITE) == 0);
  fill(at, kBytes, 1);
  push_out();
  char* out = map(kMebibyte);
  CHECK(mremap(at + 2 * kMebibyte, kMebibyte, kMebibyte, kMove, out) == out);
  CHECK(mremap(out, kMebibyte, kMebibyte, kMove, at + 2 * kMebibyte) == at + 2 * kMebibyte);
  CHECK_FILLED(at, kBytes, 1);
}

// They were taken away again by what was brought to their neighbours. Programs have to do without, as before
// Linux 6.13.
CASE(guards_are_refused_or_stay) {
  constexpr int kInstall = 102;  // MADV_GUARD_INSTALL
  constexpr std::size_t kBytes = 8 * kMebibyte;
  char* at = map(kBytes);
  push_out();
  int ends[2];
  CHECK(pipe(ends) == 0);
  for (std::size_t i = 0; i < kBytes; i += 2 * kPage) {
    if (madvise(at + i, kPage, kInstall) != 0) {
      CHECK(errno == EINVAL);
      return;
    }
  }
  for (std::size_t i = kPage; i < kBytes; i += 2 * kPage) at[i] = 1;
  for (std::size_t i = 0; i < kBytes; i += 2 * kPage) CHECK(write(ends[1], at + i, 1) == -1 && errno == EFAULT);
}

// As an allocator does that reserves much and commits by touching.
CASE(a_large_sparse_mapping) {
  constexpr std::size_t kBytes = std::size_t{8} << 30;
  char* at = static_cast<char*>(
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  CHECK(at != MAP_FAILED);
  for (std::size_t i = 0; i < kBytes; i += 2 * kMebibyte) *reinterpret_cast<std::uint64_t*>(at + i) = word(1, i);
  for (std::size_t i = 0; i < kBytes; i += 2 * kMebibyte)
    CHECK(*reinterpret_cast<std::uint64_t*>(at + i) == word(1, i));
  CHECK(munmap(at, kBytes) == 0);
}

// Mappings made through syscall() are the heap's as well: they leave.
CASE(mappings_by_system_calls_of_ones_own) {
  constexpr int kPlain = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* at = reinterpret_cast<std::byte*>(syscall(SYS_mmap, nullptr, kLarge, PROT_READ | PROT_WRITE, kPlain, -1, 0));
  CHECK(at != MAP_FAILED);
  fill(at, kLarge, 1);
  CHECK_FILLED(at, kLarge, 1);
  CHECK(syscall(SYS_madvise, at, kLarge / 2, MADV_DONTNEED) == 0 && all_zero(at, kLarge / 2));
  CHECK(syscall(SYS_mprotect, at, kPage, PROT_READ) == 0);
  at = reinterpret_cast<std::byte*>(syscall(SYS_mremap, at + kLarge / 2, kLarge / 2, kLarge, MREMAP_MAYMOVE));
  CHECK(at != MAP_FAILED && all_zero(at + kLarge / 2, kLarge / 2));
  CHECK(syscall(SYS_munmap, at, kLarge) == 0);
  CHECK(syscall(SYS_munmap, at + 1, kPage) == -1 && errno == EINVAL);
}

CASE(memory_from_sbrk) {
  auto* const first = static_cast<std::byte*>(sbrk(0));
  CHECK(sbrk(100) == first && sbrk(static_cast<intptr_t>(kLarge) - 100) == first + 100);
  CHECK(all_zero(first, kLarge));
  fill(first, kLarge, 1);
  CHECK_FILLED(first, kLarge, 1);
  CHECK(sbrk(-static_cast<intptr_t>(kLarge / 2) - 8) == first + kLarge);
  CHECK(brk(first + kLarge) == 0 && sbrk(0) == first + kLarge);
  CHECK_FILLED(first, kLarge / 2 - kPage, 1);
  CHECK(all_zero(first + kLarge / 2, kLarge / 2));  // what was given back is gone
  errno = 0;
  CHECK(sbrk(intptr_t{1} << 46) == reinterpret_cast<void*>(-1) && errno == ENOMEM);
  CHECK(sbrk(0) == first + kLarge);
  CHECK(brk(first) == 0 && sbrk(0) == first);
}
