// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private mappings of files that the program writes to: once they stayed in memory whatever the budget was (of a JVM
// the archive of its classes, 12 MiB).
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cases.hpp"

using namespace cases;

namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::size_t kPiece = 4 * kMebibyte;

// Of `bytes` that are fill()ed with the seed, and has no name.
int make_file(std::size_t bytes, std::uint64_t seed) {
  std::string path = "/var/tmp/farheap-case-XXXXXX";
  const int file = mkstemp(path.data());
  CHECK(file >= 0 && unlink(path.c_str()) == 0);
  std::vector<char> contents(bytes);
  fill(contents.data(), bytes, seed);
  CHECK(write(file, contents.data(), bytes) == static_cast<ssize_t>(bytes));
  return file;
}

void check_file(int file, std::size_t bytes, std::uint64_t seed) {
  std::vector<char> contents(bytes);
  CHECK(pread(file, contents.data(), bytes, 0) == static_cast<ssize_t>(bytes));
  CHECK_FILLED(contents.data(), bytes, seed);
}

char* map_file(int file, std::size_t bytes, off_t offset = 0, void* at = nullptr) {
  void* const mapped = mmap(at, bytes, kReadWrite, MAP_PRIVATE | (at == nullptr ? 0 : MAP_FIXED), file, offset);
  CHECK(mapped != MAP_FAILED && (at == nullptr || mapped == at));
  return static_cast<char*>(mapped);
}

bool has(const char* at, std::uint64_t seed, std::size_t offset) {
  std::uint64_t found;
  std::memcpy(&found, at + offset, sizeof found);
  return found == word(seed, offset / 8);
}

}  // namespace

// More of them than the budget, all written to.
CASE(private_files_are_paged) {
  const int file = make_file(kPiece, 1);
  std::vector<char*> pieces;
  for (std::size_t i = 0; i < kLarge / kPiece; ++i) {
    pieces.push_back(map_file(file, kPiece));
    CHECK_FILLED(pieces.back(), kPiece, 1);
    if (i % 2 == 0) fill(pieces.back(), kPiece, 2 + i);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) CHECK_FILLED(pieces[i], kPiece, i % 2 == 0 ? 2 + i : 1);
  check_file(file, kPiece, 1);
  close(file);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CHECK_FILLED(pieces[i], kPiece, i % 2 == 0 ? 2 + i : 1);
    CHECK(munmap(pieces[i], kPiece) == 0);
  }
}

CASE(a_private_file_lies_over_a_reservation) {
  constexpr std::size_t kAt = 3 * kMebibyte;
  const int file = make_file(kPiece, 1);
  auto* const reserved =
      static_cast<char*>(mmap(nullptr, 64 * kMebibyte, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  CHECK(reserved != MAP_FAILED);
  char* at = map_file(file, kPiece - kPage, kPage, reserved + kAt);
  CHECK(has(at - kPage, 1, kPage) && has(at - kPage, 1, kPiece - 8));
  fill(at, kMebibyte, 2);
  push_out();
  CHECK_FILLED(at, kMebibyte, 2);
  CHECK(has(at - kPage, 1, kPage + kMebibyte));
  // Anonymous memory, and another part of the file, over parts of it.
  CHECK(mmap(at, kPage, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
  map_file(file, kPage, 0, at + kMebibyte);
  push_out();
  CHECK(all_zero(at, kPage) && has(at + kMebibyte, 1, 0));
  CHECK(madvise(at, 2 * kMebibyte, MADV_DONTNEED) == 0);
  CHECK(all_zero(at, kPage) && has(at - kPage, 1, 2 * kPage) && has(at + kMebibyte, 1, 0));
  CHECK(has(at - kPage, 1, kMebibyte + 2 * kPage));
  CHECK(munmap(reserved, 64 * kMebibyte) == 0);
  close(file);
}

CASE(a_dropped_private_file_shows_again) {
  const int file = make_file(kPiece, 1);
  char* at = map_file(file, kPiece);
  CHECK(pwrite(file, "once", 4, kPiece) == 4);  // the file grows: nothing to the mapping
  close(file);
  fill(at, kPiece, 2);
  push_out();
  CHECK(madvise(at + kMebibyte, kMebibyte, MADV_DONTNEED) == 0);
  CHECK_FILLED(at, kMebibyte, 2);
  CHECK(has(at, 1, kMebibyte) && has(at, 1, 2 * kMebibyte - 8) && has(at, 2, 2 * kMebibyte));
  // What cannot be written, or not be read either, is dropped, too.
  CHECK(mprotect(at + 2 * kMebibyte, kMebibyte, PROT_READ) == 0);
  CHECK(mprotect(at + 3 * kMebibyte, kMebibyte, PROT_NONE) == 0);
  CHECK(madvise(at + 2 * kMebibyte, 2 * kMebibyte, MADV_DONTNEED) == 0);
  CHECK(has(at, 1, 2 * kMebibyte) && has(at, 1, 3 * kMebibyte - 8));
  push_out();
  CHECK(mprotect(at + 3 * kMebibyte, kMebibyte, PROT_READ) == 0);
  CHECK(has(at, 1, 3 * kMebibyte) && has(at, 1, kPiece - 8));
  // In a child, too, and what it drops is its own.
  fill(at, kPage, 3);
  const pid_t child = fork();
  if (child == 0) {
    CHECK_FILLED(at, kPage, 3);
    CHECK(madvise(at, kPage, MADV_DONTNEED) == 0);
    _exit(has(at, 1, 0) ? 0 : 1);
  }
  CHECK(status_of(child) == 0);
  CHECK_FILLED(at, kPage, 3);
  CHECK(munmap(at + kPage, kPiece - kPage) == 0 && munmap(at, kPage) == 0);
}

CASE(beyond_the_end_of_a_private_file) {
  const int file = make_file(kMebibyte + 100, 1);
  push_out();
  char* at = map_file(file, 2 * kMebibyte);
  at[0] = 1;
  CHECK(at[kMebibyte + 100] == 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);
    *const_cast<volatile char*>(at + kMebibyte + kPage) = 1;
    _exit(0);
  }
  CHECK(status_of(child) == 128 + SIGBUS);
  // And what the kernel refuses is refused.
  errno = 0;
  CHECK(mmap(nullptr, kMebibyte, kReadWrite, MAP_PRIVATE, file, 1) == MAP_FAILED && errno == EINVAL);
  const int only_written = open("/var/tmp", O_TMPFILE | O_WRONLY, 0600);
  if (only_written >= 0) {
    CHECK(ftruncate(only_written, kMebibyte) == 0);
    CHECK(mmap(nullptr, kMebibyte, kReadWrite, MAP_PRIVATE, only_written, 0) == MAP_FAILED && errno == EACCES);
    close(only_written);
  }
  close(file);
}

// Parts of a file, readable alone and writable, zeros and holes over each other, protected, written to and dropped at
// random, beside what they should be. Once what was dropped showed zeros where a part of it was the kernel's.
CASE(random_work_on_private_files) {
  constexpr std::size_t kPages = 2048, kWords = kPage / sizeof(std::uint64_t);
  struct Expected {
    bool is_mapped = true;
    int protection = PROT_NONE;
    std::uint64_t value = 0;
    std::uint64_t in_file = 0;  // what shows when it is dropped; zeros are no file's
  };
  std::mt19937 random(11);
  const auto new_value = [&] { return std::uint64_t{random()} << 1 | 1; };
  const int file = make_file(kPage, 0);
  std::vector<std::uint64_t> of_file(2 * kPages);
  for (std::size_t i = 0; i < of_file.size(); ++i) {
    const std::vector<std::uint64_t> page(kWords, of_file[i] = new_value());
    CHECK(pwrite(file, page.data(), kPage, static_cast<off_t>(i * kPage)) == static_cast<ssize_t>(kPage));
  }
  constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* const at = static_cast<char*>(mmap(nullptr, kPages * kPage, PROT_NONE, kAnonymous | MAP_NORESERVE, -1, 0));
  CHECK(at != MAP_FAILED);
  std::vector<Expected> expected(kPages);
  const auto check = [&] {
    for (std::size_t i = 0; i < kPages; ++i) {
      if (!expected[i].is_mapped || (expected[i].protection & PROT_READ) == 0) continue;
      const auto* words = reinterpret_cast<const std::uint64_t*>(at + i * kPage);
      CHECK(words[0] == expected[i].value && words[kWords - 1] == expected[i].value);
    }
  };
  const auto drop = [&](std::size_t first, std::size_t end) {
    CHECK(madvise(at + first * kPage, (end - first) * kPage, MADV_DONTNEED) == 0);
    for (std::size_t i = first; i < end; ++i) expected[i].value = expected[i].in_file;
  };
  for (int step = 0; step < 2000; ++step) {
    const std::size_t first = random() % kPages;
    const std::size_t end = std::min(kPages, first + 1 + random() % (random() % 4 != 0 ? 32 : 600));
    char* const place = at + first * kPage;
    const std::size_t bytes = (end - first) * kPage;
    bool all_mapped = true;
    for (std::size_t i = first; i < end; ++i) all_mapped &= expected[i].is_mapped;
    switch (random() % 9) {
      case 0:
      case 1:
      case 2: {
        const std::size_t from = random() % kPages;
        const int protection = random() % 3 == 0 ? PROT_READ : kReadWrite;
        CHECK(mmap(place, bytes, protection, MAP_PRIVATE | MAP_FIXED, file, static_cast<off_t>(from * kPage)) == place);
        for (std::size_t i = first; i < end; ++i) {
          const std::uint64_t value = of_file[from + i - first];
          expected[i] = {.protection = protection, .value = value, .in_file = value};
        }
        break;
      }
      case 3:
        CHECK(mmap(place, bytes, kReadWrite, kAnonymous | MAP_FIXED, -1, 0) == place);
        for (std::size_t i = first; i < end; ++i) expected[i] = {.protection = kReadWrite};
        break;
      case 4:
        if (end - first > 64) break;
        CHECK(munmap(place, bytes) == 0);
        for (std::size_t i = first; i < end; ++i) expected[i].is_mapped = false;
        break;
      case 5: {
        const int protection = std::vector{PROT_NONE, PROT_READ, kReadWrite}[random() % 3];
        if (!all_mapped) break;
        CHECK(mprotect(place, bytes, protection) == 0);
        for (std::size_t i = first; i < end; ++i) expected[i].protection = protection;
        break;
      }
      case 6:
        if (all_mapped) drop(first, end);
        break;
      case 7:
        for (std::size_t i = first; i < end; ++i) {
          if (!expected[i].is_mapped || expected[i].protection != kReadWrite) continue;
          std::fill_n(reinterpret_cast<std::uint64_t*>(at + i * kPage), kWords, expected[i].value = new_value());
        }
        break;
      case 8:
        if (step % 8 == 0) push_out();
        break;
    }
    if (step % 20 == 0) check();
    if (step % 200 != 0) continue;
    const pid_t child = fork();
    if (child == 0) {
      check();
      if (all_mapped) drop(first, end);
      check();
      _exit(0);
    }
    CHECK(status_of(child) == 0);
  }
  check();
  CHECK(munmap(at, kPages * kPage) == 0);
  close(file);
}
