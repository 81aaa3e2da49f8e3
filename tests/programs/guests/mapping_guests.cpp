// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that manage their memory by themselves: mremap, madvise in all forms, mlock, files in memory.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "guests.hpp"

using namespace guests;

namespace {

// Linux 5.14 and later; Debian 12's headers have them, but others build this, too.
constexpr int kPopulateRead = 22, kPopulateWrite = 23, kCollapse = 25;

std::uint64_t* map_anonymous(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  return static_cast<std::uint64_t*>(at);
}

// A mapping whose page p starts with a word of its own: what has been written can be told by looking.
struct Table {
  std::uint64_t* at = nullptr;
  std::size_t pages = 0;
  std::uint64_t seed = 0;

  [[nodiscard]] std::uint64_t* page(std::size_t number) const { return at + number * kPage / 8; }
  void check_page(std::size_t number) const { CHECK_FILLED(page(number), kPage, seed + number); }
  void grow_to(std::size_t grown, void* moved) {
    at = static_cast<std::uint64_t*>(moved);
    for (; pages < grown; ++pages) {
      CHECK(all_zero(page(pages), kPage));
      fill(page(pages), kPage, seed + pages);
    }
  }
};

void resize(Table& table, std::size_t pages, int flags, void* fixed = nullptr) {
  void* moved = mremap(table.at, table.pages * kPage, pages * kPage, flags, fixed);
  if (moved == MAP_FAILED && flags == 0) {  // no room to grow where it is
    CHECK(errno == ENOMEM && pages > table.pages);
    moved = mremap(table.at, table.pages * kPage, pages * kPage, MREMAP_MAYMOVE);
  }
  CHECK(moved != MAP_FAILED && (fixed == nullptr || moved == fixed));
  table.pages = std::min(table.pages, pages);
  table.grow_to(pages, moved);
}

}  // namespace

// Tables that grow, shrink and move, as realloc() of large objects and columnar databases do.
CASE(moves_its_mappings) {
  constexpr std::size_t kTables = 48;
  const std::size_t most = data_bytes() / kTables / kPage;
  Table tables[kTables];
  Random random(1);
  for (std::size_t i = 0; i < kTables; ++i) {
    tables[i].seed = i * 1'000'000;
    tables[i].grow_to(most, map_anonymous(most * kPage));
  }
  for (std::size_t i = 0; i < 12 * kTables; ++i) {
    Table& table = tables[random.below(kTables)];
    for (int k = 0; k < 4; ++k) table.check_page(random.below(table.pages));
    const std::size_t pages = 1 + random.below(most);
    switch (random.below(4)) {
      case 0: resize(table, std::max<std::size_t>(1, table.pages / 2), 0); break;
      case 1: resize(table, pages, 0); break;
      case 2: resize(table, pages, MREMAP_MAYMOVE); break;
      default: resize(table, pages, MREMAP_MAYMOVE | MREMAP_FIXED, map_anonymous(pages * kPage));
    }
  }
  std::uint64_t sum = 0;
  for (const Table& table : tables) {
    for (std::size_t page = 0; page < table.pages; ++page) table.check_page(page);
    sum = digest(table.at, table.pages * kPage, sum);
  }
  for (Table& table : tables) CHECK(munmap(table.at, table.pages * kPage) == 0);
  print_digest("tables", sum);
}

namespace {

constexpr int kAdvice[] = {
    MADV_NORMAL, MADV_RANDOM,    MADV_SEQUENTIAL,  MADV_WILLNEED, MADV_DONTNEED, MADV_FREE,       MADV_DONTFORK,
    MADV_DOFORK, MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_COLD,     MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP,
    MADV_DODUMP, MADV_REMOVE,    MADV_KEEPONFORK,  MADV_PAGEOUT,  kPopulateRead, kPopulateWrite,  kCollapse};

// What the program may rely on after `advice`: what it says of the bytes, and whether the call was good.
void advise(Table& table, std::vector<bool>& is_zero, std::size_t first, std::size_t pages, int advice) {
  const int result = madvise(table.page(first), pages * kPage, advice);
  if (advice == MADV_REMOVE) CHECK(result == -1 && errno == EINVAL);
  if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_WILLNEED || advice == kPopulateRead ||
      advice == kPopulateWrite || advice == MADV_PAGEOUT || advice == MADV_COLD) {
    CHECK(result == 0);
  }
  for (std::size_t page = first; page < first + pages; ++page) {
    if (advice == MADV_DONTNEED) is_zero[page] = true;
    if (advice != MADV_FREE) continue;
    // Freed pages keep their bytes or read as zeros, each as a whole, until they are written.
    if (!all_zero(table.page(page), kPage) && !is_zero[page]) table.check_page(page);
    fill(table.page(page), kPage, table.seed + page);
    is_zero[page] = false;
  }
}

}  // namespace

CASE(advises_everything) {
  Table table;
  table.seed = 77;
  const std::size_t pages = data_bytes() / kPage;
  table.grow_to(pages, map_anonymous(pages * kPage));
  std::vector<bool> is_zero(pages);
  Random random(2);
  const auto check = [&](std::size_t page) {
    if (is_zero[page]) {
      CHECK(all_zero(table.page(page), kPage));
    } else {
      table.check_page(page);
    }
  };
  for (int round = 0; round < 1500; ++round) {
    const std::size_t count = 1 + random.below(random.below(8) == 0 ? 600 : 40);
    const std::size_t first = random.below(pages - count);
    advise(table, is_zero, first, count, kAdvice[random.below(std::size(kAdvice))]);
    check(first + random.below(count));
    for (int k = 0; k < 3; ++k) check(random.below(pages));
    const std::size_t written = random.below(pages);
    fill(table.page(written), kPage, table.seed + written);
    is_zero[written] = false;
  }
  std::uint64_t sum = 0;
  for (std::size_t page = 0; page < pages; ++page) {
    check(page);
    sum = digest(table.page(page), kPage, sum);
  }
  print_digest("pages", sum);
}

// Ranges that are locked, one after the other, while everything else comes and goes.
CASE(locks_what_it_works_on) {
  const Pieces data(data_bytes(), 3);
  constexpr std::size_t kWindow = 8;  // pieces
  Random random(3);
  for (std::size_t first = 0; first + kWindow <= data.count(); first += kWindow / 2) {
    for (std::size_t i = first; i < first + kWindow; ++i) {
      CHECK((i % 2 == 0 ? mlock(data.piece(i), Pieces::kPiece)
                        : mlock2(data.piece(i), Pieces::kPiece, MLOCK_ONFAULT)) == 0);
    }
    for (int k = 0; k < 60; ++k) data.check_a_word(random);
    for (std::size_t i = first; i < first + kWindow; ++i) data.check(i);
    for (std::size_t i = first; i < first + kWindow; ++i) CHECK(munlock(data.piece(i), Pieces::kPiece) == 0);
  }
  CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
  data.check_all();
  CHECK(munlockall() == 0);
  CHECK(mlockall(MCL_FUTURE | MCL_ONFAULT) == 0);
  const Pieces more(8 * kMebibyte, 9);
  CHECK(munlockall() == 0);
  data.check_all();
  more.check_all();
  print_digest("first", digest(data.piece(0), Pieces::kPiece));
}

// A cache of blocks of a file: blocks go from the heap to the file through a shared mapping, come back through a
// private one that is written in its turn, and through read and write.
CASE(files_in_memory) {
  const Pieces data(data_bytes(), 4);
  constexpr std::size_t kPiece = Pieces::kPiece;
  const std::size_t bytes = data.count() * kPiece;
  const int file = nameless_file();
  CHECK(ftruncate(file, static_cast<off_t>(bytes)) == 0);
  auto* shared = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  auto* own = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
  CHECK(shared != MAP_FAILED && own != MAP_FAILED);
  for (std::size_t i = 0; i < data.count(); ++i) {
    memcpy(shared + i * kPiece, data.piece(i), kPiece);
    if (i % 16 == 15) CHECK(msync(shared + (i - 15) * kPiece, 16 * kPiece, i % 32 == 15 ? MS_SYNC : MS_ASYNC) == 0);
  }
  for (std::size_t i = 0; i < data.count(); i += 3) {  // and back into other pieces of the heap, by read()
    CHECK(pread(file, data.piece(i), kPiece, static_cast<off_t>(i * kPiece)) == static_cast<ssize_t>(kPiece));
  }
  for (std::size_t i = 0; i < data.count(); i += 20) {  // private pages: anonymous memory, and plain
    CHECK(memcmp(own + i * kPiece, data.piece(i), kPiece) == 0);
    fill(own + i * kPiece, kPage, i);
    memcpy(data.piece(i), own + i * kPiece, kPiece);
    CHECK_FILLED(data.piece(i), kPage, i);
    memcpy(data.piece(i), shared + i * kPiece, kPage);
  }
  CHECK(msync(shared, bytes, MS_SYNC | MS_INVALIDATE) == 0);
  data.check_all();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < data.count(); ++i) sum = digest(shared + i * kPiece, kPiece, sum);
  for (std::size_t i = 0; i < data.count(); i += 20) sum = digest(own + i * kPiece, kPage, sum);
  CHECK(munmap(shared, bytes) == 0 && munmap(own, bytes) == 0 && close(file) == 0);
  print_digest("file", sum);
}

// Files laid over parts of an anonymous mapping and taken away again, as a loader or a garbage collector does.
CASE(files_over_parts_of_a_mapping) {
  const std::size_t pages = data_bytes() / kPage;
  constexpr std::size_t kWindow = 64;
  Table table;
  table.grow_to(pages, map_anonymous(pages * kPage));
  std::vector<std::uint64_t> content(kWindow * kPage / 8);
  fill(content.data(), kWindow * kPage, 99);
  const int file = nameless_file();
  CHECK(write(file, content.data(), kWindow * kPage) == static_cast<ssize_t>(kWindow * kPage));
  Random random(5);
  std::uint64_t sum = 0;
  for (int round = 0; round < 150; ++round) {
    const std::size_t first = random.below(pages - kWindow);
    const int kind = random.below(2) == 0 ? MAP_SHARED : MAP_PRIVATE;
    CHECK(mmap(table.page(first), kWindow * kPage, PROT_READ, kind | MAP_FIXED, file, 0) == table.page(first));
    for (int k = 0; k < 20; ++k) {
      const std::size_t page = random.below(pages);
      if (page < first || page >= first + kWindow) table.check_page(page);
    }
    CHECK_FILLED(table.page(first), kWindow * kPage, 99);
    CHECK(mmap(table.page(first), kWindow * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) == table.page(first));
    CHECK(all_zero(table.page(first), kWindow * kPage));
    for (std::size_t page = first; page < first + kWindow; ++page) fill(table.page(page), kPage, table.seed + page);
  }
  for (std::size_t page = 0; page < pages; ++page) {
    table.check_page(page);
    sum = digest(table.page(page), kPage, sum);
  }
  CHECK(close(file) == 0);
  print_digest("pages", sum);
}
