// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses as allocators with ideas of their own treat them (V8, a JVM's collectors, jemalloc): reserved without
// access, trimmed to an alignment, opened and shut piece by piece, unmapped and mapped anew.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "cases.hpp"

using namespace cases;

namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kPlain = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr std::size_t kGibibyte = 1024 * kMebibyte;

char* map(void* wish, std::size_t bytes, int protection, int flags) {
  void* at = mmap(wish, bytes, protection, flags, -1, 0);
  CHECK(at != MAP_FAILED);
  CHECK((flags & MAP_FIXED) == 0 || at == wish);
  return static_cast<char*>(at);
}

char* reserve(std::size_t bytes) { return map(nullptr, bytes, PROT_NONE, kPlain | MAP_NORESERVE); }

sigjmp_buf g_back;

// Whether a look at the address ends in SIGSEGV.
bool ends_in_a_fault(const char* at) {
  struct sigaction jump{}, before{};
  jump.sa_handler = [](int) { siglongjmp(g_back, 1); };
  CHECK(sigaction(SIGSEGV, &jump, &before) == 0);
  volatile bool faulted = false;
  if (sigsetjmp(g_back, 1) == 0) {
    (void)*const_cast<const volatile char*>(at);
  } else {
    faulted = true;
  }
  CHECK(sigaction(SIGSEGV, &before, nullptr) == 0);
  return faulted;
}

}  // namespace

CASE(a_reservation_is_opened_and_shut) {
  constexpr std::size_t kPiece = 4 * kMebibyte, kPieces = kLarge / kPiece;
  char* at = reserve(8 * kGibibyte);
  CHECK(ends_in_a_fault(at) && ends_in_a_fault(at + 5 * kGibibyte));
  const auto piece = [&](std::size_t i) { return at + i * 3 * kPiece; };
  for (std::size_t i = 0; i < kPieces; ++i) {
    if (i % 2 == 0) {
      CHECK(mprotect(piece(i), kPiece, kReadWrite) == 0);
    } else {
      map(piece(i), kPiece, kReadWrite, kPlain | MAP_FIXED);
    }
    CHECK(all_zero(piece(i), kPiece));
    fill(piece(i), kPiece, i);
    CHECK(ends_in_a_fault(piece(i) + kPiece));
  }
  for (std::size_t i = 0; i < kPieces; ++i) CHECK_FILLED(piece(i), kPiece, i);
  for (std::size_t i = 0; i < kPieces; i += 3) {  // each way to shut a piece and drop what it holds
    CHECK(mprotect(piece(i), kPiece, PROT_NONE) == 0);
    CHECK(ends_in_a_fault(piece(i)));
    if (i % 2 == 0) CHECK(madvise(piece(i), kPiece, MADV_DONTNEED) == 0);
    if (i % 2 == 1) map(piece(i), kPiece, PROT_NONE, kPlain | MAP_FIXED | MAP_NORESERVE);
    CHECK(mprotect(piece(i), kPiece, kReadWrite) == 0);
    CHECK(all_zero(piece(i), kPiece));
    fill(piece(i), kPiece, 100 + i);
  }
  push_out();
  for (std::size_t i = 0; i < kPieces; ++i) CHECK_FILLED(piece(i), kPiece, i % 3 == 0 ? 100 + i : i);
  // What is shut keeps what it holds.
  CHECK(mprotect(piece(1) - kPiece, 3 * kPiece, PROT_NONE) == 0);
  push_out();
  CHECK(mprotect(piece(1), kPiece, PROT_READ) == 0);
  CHECK_FILLED(piece(1), kPiece, 1);
  CHECK(munmap(at, 8 * kGibibyte) == 0);
  CHECK(ends_in_a_fault(piece(1)));
}

CASE(reservations_trimmed_to_an_alignment) {
  constexpr std::size_t kUnit = kMebibyte;
  std::vector<char*> units;
  for (std::size_t i = 0; i < 96; ++i) {
    char* wide = map(reinterpret_cast<void*>(0x123456780000 + i * 2 * kUnit), 2 * kUnit - kPage, PROT_NONE,
                     kPlain | MAP_NORESERVE);
    char* end = wide + 2 * kUnit - kPage;
    auto* unit = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(wide) + kUnit - 1) / kUnit * kUnit);
    if (unit != wide) CHECK(munmap(wide, static_cast<std::size_t>(unit - wide)) == 0);
    if (unit + kUnit != end) CHECK(munmap(unit + kUnit, static_cast<std::size_t>(end - unit) - kUnit) == 0);
    CHECK(mprotect(unit, kUnit / 2, kReadWrite) == 0 && mprotect(unit + kUnit / 2, kUnit / 2, kReadWrite) == 0);
    CHECK(madvise(unit, kUnit, i % 2 == 0 ? MADV_NOHUGEPAGE : MADV_DONTDUMP) == 0);
    fill(unit, kUnit, i);
    units.push_back(unit);
  }
  for (std::size_t i = 0; i < units.size(); ++i) CHECK_FILLED(units[i], kUnit, i);
  for (std::size_t i = 0; i < units.size(); i += 2) CHECK(munmap(units[i], kUnit) == 0);
  for (std::size_t i = 0; i < units.size(); i += 2) fill(map(nullptr, kUnit, kReadWrite, kPlain), kUnit, i);
  for (std::size_t i = 1; i < units.size(); i += 2) CHECK_FILLED(units[i], kUnit, i);
}

// Data was lost where a program mapped its own over addresses that it had unmapped before: they were given to others.
CASE(mapped_again_where_it_was_unmapped) {
  for (int round = 0; round < 2; ++round) {
    char* at = map(nullptr, 8 * kMebibyte, kReadWrite, kPlain);
    fill(at, 8 * kMebibyte, 1);
    CHECK(munmap(at + kMebibyte, 6 * kMebibyte) == 0);
    CHECK(ends_in_a_fault(at + kMebibyte) && ends_in_a_fault(at + 7 * kMebibyte - 1));
    errno = 0;
    CHECK(mprotect(at, 8 * kMebibyte, kReadWrite) == -1 && errno == ENOMEM);
    map(at + kMebibyte, kMebibyte, kReadWrite, kPlain | MAP_FIXED);
    fill(at + kMebibyte, kMebibyte, 2);
    CHECK(map(at + 3 * kMebibyte, kMebibyte, kReadWrite, kPlain | MAP_FIXED_NOREPLACE) == at + 3 * kMebibyte);
    fill(at + 3 * kMebibyte, kMebibyte, 3);
    errno = 0;
    CHECK(mmap(at + 2 * kMebibyte, 2 * kMebibyte, kReadWrite, kPlain | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
    CHECK(errno == EEXIST);
    for (std::size_t i = 0; i < 12; ++i) fill(map(nullptr, kMebibyte, kReadWrite, kPlain), kMebibyte, 10 + i);
    push_out();
    CHECK_FILLED(at, kMebibyte, 1);
    CHECK_FILLED(at + kMebibyte, kMebibyte, 2);
    CHECK_FILLED(at + 3 * kMebibyte, kMebibyte, 3);
  }
}

CASE(mremap_of_reservations) {
  char* at = reserve(16 * kMebibyte);
  auto* grown = static_cast<char*>(mremap(at, 16 * kMebibyte, 64 * kMebibyte, MREMAP_MAYMOVE));
  CHECK(grown != MAP_FAILED && ends_in_a_fault(grown));
  CHECK(mprotect(grown + 8 * kMebibyte, 8 * kMebibyte, kReadWrite) == 0);
  fill(grown + 8 * kMebibyte, 8 * kMebibyte, 1);
  push_out();
  errno = 0;  // two mappings, one accessible and one not
  CHECK(mremap(grown, 16 * kMebibyte, 128 * kMebibyte, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
  CHECK(mprotect(grown + 8 * kMebibyte, 8 * kMebibyte, PROT_NONE) == 0);
  char* to = reserve(8 * kMebibyte);
  CHECK(mremap(grown + 8 * kMebibyte, 8 * kMebibyte, 8 * kMebibyte, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
  CHECK(ends_in_a_fault(to) && ends_in_a_fault(grown + 8 * kMebibyte));
  CHECK(mprotect(to, 8 * kMebibyte, kReadWrite) == 0);
  CHECK_FILLED(to, 8 * kMebibyte, 1);
}

// The program ended when paging started, and each child after a fork: the kernel watches no pages of a file.
CASE(a_file_mapped_into_a_reservation_before_paging_starts) {
  char name[] = "/tmp/preload-cases-XXXXXX";
  const int file = mkstemp(name);
  CHECK(file >= 0 && unlink(name) == 0);
  std::vector<std::uint64_t> words(kMebibyte / 8);
  fill(words.data(), kMebibyte, 3);
  CHECK(write(file, words.data(), kMebibyte) == static_cast<ssize_t>(kMebibyte));
  char* at = reserve(16 * kMebibyte);
  CHECK(mprotect(at, 8 * kMebibyte, kReadWrite) == 0);
  fill(at, 8 * kMebibyte, 1);
  CHECK(mmap(at + 2 * kMebibyte, kMebibyte, kReadWrite, MAP_PRIVATE | MAP_FIXED, file, 0) == at + 2 * kMebibyte);
  close(file);
  at[3 * kMebibyte - 1] = 'x';
  push_out();
  const auto right = [&] {
    CHECK_FILLED(at, 2 * kMebibyte, 1);
    CHECK_FILLED(at + 2 * kMebibyte, kMebibyte / 2, 3);
    CHECK(at[3 * kMebibyte - 1] == 'x');
    CHECK(*reinterpret_cast<std::uint64_t*>(at + 3 * kMebibyte) == word(1, 3 * kMebibyte / 8));
  };
  right();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    push_out();
    right();
    _exit(0);
  }
  CHECK(status_of(child) == 0);
  CHECK(munmap(at, 16 * kMebibyte) == 0);
}

// Against a model: a byte of the right answer for every page.
CASE(random_work_on_a_reservation) {
  constexpr std::size_t kPages = 24'000;  // 94 MiB
  enum Access : char { kGone, kNone, kRead, kBoth };
  struct Page {
    Access access = kNone;
    std::uint64_t seed = 0;  // 0: zeros
  };
  std::vector<Page> model(kPages);
  char* base = reserve(kPages * kPage);
  std::mt19937_64 random(7);
  const auto each = [&](std::size_t from, std::size_t count, auto change) {
    for (std::size_t i = from; i < from + count; ++i) change(i, model[i]);
  };
  const auto check = [&](std::size_t i, const Page& page) {
    if (page.access < kRead) return;
    CHECK(page.seed == 0 ? all_zero(base + i * kPage, kPage) : first_wrong(base + i * kPage, kPage, page.seed) == -1);
  };
  for (std::uint64_t step = 1; step < 3000; ++step) {
    const std::size_t from = random() % kPages;
    const std::size_t count = 1 + random() % std::min<std::size_t>(kPages - from, random() % 8 == 0 ? 2000 : 100);
    char* at = base + from * kPage;
    const std::size_t bytes = count * kPage;
    bool whole = true;
    each(from, count, [&](std::size_t, const Page& page) { whole = whole && page.access != kGone; });
    switch (random() % 9) {
      case 0:
      case 1:
        if (!whole) break;
        CHECK(mprotect(at, bytes, kReadWrite) == 0);
        each(from, count, [](std::size_t, Page& page) { page.access = kBoth; });
        break;
      case 2:
        map(at, bytes, kReadWrite, kPlain | MAP_FIXED);
        each(from, count, [](std::size_t, Page& page) { page = {kBoth, 0}; });
        break;
      case 3:
        if (!whole) break;
        CHECK(mprotect(at, bytes, PROT_READ) == 0);
        each(from, count, [](std::size_t, Page& page) { page.access = kRead; });
        break;
      case 4:
        map(at, bytes, PROT_NONE, kPlain | MAP_FIXED | MAP_NORESERVE);
        each(from, count, [](std::size_t, Page& page) { page = {kNone, 0}; });
        break;
      case 5:
        if (!whole) break;
        CHECK(mprotect(at, bytes, PROT_NONE) == 0);
        if (random() % 2 == 0) {
          CHECK(madvise(at, bytes, MADV_DONTNEED) == 0);
          each(from, count, [](std::size_t, Page& page) { page.seed = 0; });
        }
        each(from, count, [](std::size_t, Page& page) { page.access = kNone; });
        break;
      case 6:
        CHECK(munmap(at, bytes) == 0);
        each(from, count, [](std::size_t, Page& page) { page = {kGone, 0}; });
        break;
      default:
        each(from, count, [&](std::size_t i, Page& page) {
          check(i, page);
          if (page.access == kBoth) fill(base + i * kPage, kPage, page.seed = step);
        });
    }
    if (model[from].access < kRead) CHECK(ends_in_a_fault(at));
  }
  push_out();
  each(0, kPages, check);
}
