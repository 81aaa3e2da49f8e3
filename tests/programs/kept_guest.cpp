// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The guest of tests that make system calls fail or kill programs: a kept heap, larger than the memory it may have, in
// which every page tells how many steps were done.
//
//   kept_guest URI write STEPS    so many steps more (0: no end); says after each commit that returned which step it
//   was kept_guest URI check          says which step the last commit was
//
// 0 done, 1 an error (on stderr), 99 wrong data, which is said on stdout.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <farheap/heap.hpp>
#include <string_view>

namespace {

constexpr std::size_t kPages = 6000, kPageBytes = 4096, kWords = kPageBytes / sizeof(std::uint64_t);
constexpr int kWrongData = 99;
constexpr farheap::HeapOptions kOptions{.memory = 16 << 20, .capacity = std::uint64_t{1} << 30};

struct Book {
  std::uint64_t steps = 0;
  std::uint64_t* pages = nullptr;
};

int failed(const farheap::Error& error) {
  std::fprintf(stderr, "kept_guest: %s\n", error.message().c_str());
  return 1;
}

// Step S writes every page whose number has S's remainder by 4; a page has the last step that wrote it.
std::uint64_t last_step_of(std::size_t page, std::uint64_t steps) {
  const std::uint64_t back = (steps + 4 - page % 4) % 4;
  return steps >= back ? steps - back : 0;
}
std::uint64_t word(std::size_t page, std::uint64_t step, std::size_t index) {
  return step == 0 ? 0 : step * 1'000'003 + page * kWords + index;
}

bool is_right(const Book& book) {
  for (std::size_t page = 0; page < kPages; ++page) {
    const std::uint64_t step = last_step_of(page, book.steps);
    for (std::size_t i = 0; i < kWords; i += 73) {
      if (book.pages[page * kWords + i] == word(page, step, i)) continue;
      std::printf("WRONG DATA in page %zu at step %llu\n", page, static_cast<unsigned long long>(book.steps));
      return false;
    }
  }
  return true;
}

void step(Book& book) {
  ++book.steps;
  for (std::size_t page = book.steps % 4; page < kPages; page += 4) {
    for (std::size_t i = 0; i < kWords; ++i) book.pages[page * kWords + i] = word(page, book.steps, i);
  }
}

int write(const char* uri, std::uint64_t steps) {
  auto heap = farheap::Heap::open_or_create(uri, kOptions);
  if (!heap) return failed(heap.error());
  Book* const book = heap->find_or_construct<Book>("book")();
  if (book->pages == nullptr) {
    book->pages = static_cast<std::uint64_t*>(heap->allocate(kPages * kPageBytes));
    if (book->pages == nullptr) return std::fprintf(stderr, "kept_guest: no room\n"), 1;
    std::memset(book->pages, 0, kPages * kPageBytes);
  }
  const std::uint64_t end = steps == 0 ? ~std::uint64_t{0} : book->steps + steps;
  while (book->steps < end) {
    if (!is_right(*book)) return kWrongData;
    step(*book);
    // One that fails leaves all as it was, and is tried again.
    auto committed = heap->commit();
    if (!committed) std::fprintf(stderr, "kept_guest: %s\n", committed.error().message().c_str());
    if (!committed) committed = heap->commit();
    if (!committed) return failed(committed.error());
    std::printf("%llu\n", static_cast<unsigned long long>(book->steps));
    std::fflush(stdout);
  }
  return is_right(*book) ? 0 : kWrongData;
}

int check(const char* uri) {
  auto heap = farheap::Heap::open(uri, kOptions);
  if (!heap && heap.error().code == farheap::ErrorCode::kNotFound) return std::puts("0"), 0;
  if (!heap) return failed(heap.error());
  const Book* const book = heap->find<Book>("book");
  if (book == nullptr) return std::puts("0"), 0;
  if (!is_right(*book)) return kWrongData;
  std::printf("%llu\n", static_cast<unsigned long long>(book->steps));
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count == 4 && std::string_view(arguments[2]) == "write") {
    return write(arguments[1], std::strtoull(arguments[3], nullptr, 10));
  }
  if (count == 3 && std::string_view(arguments[2]) == "check") return check(arguments[1]);
  std::fprintf(stderr, "kept_guest URI write STEPS | kept_guest URI check\n");
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "kept_guest: %s\n", error.what());
  return 1;
}
