// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// stores_paging MIB, under `farheap run`: what a program pays that sweeps through more memory than it may have.
//   write_s, written_bytes   the first sweep: new pages are written, older ones leave for the store meanwhile
//   read_s, read_bytes       a later sweep, when all that is in memory is clean: pages come from the store
//   miss_us, misses          one word of a page at random, back to back: those that had to be read, median
// The counters are those of the run (base/run_page.hpp). Every page that is read is checked.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/run_page.hpp"
#include "stores/pages.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr int kMisses = 1500;

struct Memory {
  std::uint64_t* words;
  std::uint64_t pages;
  [[nodiscard]] std::uint64_t* page(std::uint64_t number) const { return words + number * (kPage / 8); }
};

void wrong(std::uint64_t page) {
  std::fprintf(stderr, "stores_paging: page %llu is wrong\n", static_cast<unsigned long long>(page));
  std::exit(1);
}

// Only what is_page() looks at, so that filling does not hide the store.
void mark(const Memory& memory, std::uint64_t number) {
  for (const std::size_t word : {0, 200, 500}) memory.page(number)[word] = word_of(number, word);
}

double read_sweep(const Memory& memory) {
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < memory.pages; ++i) {
    if (!is_page(memory.page(i), i)) wrong(i);
  }
  return us_since(start) / 1e6;
}

void misses(const Memory& memory, const base::RunCounters& counters) {
  std::vector<double> times;
  std::uint64_t dice = 0;
  const auto touch = [&] {
    const std::uint64_t page = word_of(dice++, 1) % memory.pages;
    const auto before = counters.faults_store.load();
    const auto start = Clock::now();
    const std::uint64_t found = *static_cast<volatile std::uint64_t*>(memory.page(page));
    const double us = us_since(start);
    if (found != word_of(page, 0)) wrong(page);
    return counters.faults_store.load() > before ? us : 0;
  };
  for (int i = 0; i < 4 * kMisses; ++i) touch();  // until the pager has seen that it is at random
  for (int i = 0; i < 10 * kMisses && times.size() < kMisses; ++i) {
    if (const double us = touch(); us > 0) times.push_back(us);
  }
  std::printf("miss_us %g\nmisses %zu\n", median(times), times.size());
}

int run(std::uint64_t mib) {
  const base::RunPage* const run_page = base::find_run_page(std::getenv(base::kRunPageVariable));
  if (run_page == nullptr) return std::fprintf(stderr, "stores_paging: start it with `farheap run`\n"), 2;
  const base::RunCounters& counters = run_page->counters;
  void* const at = mmap(nullptr, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 1;
  const Memory memory{static_cast<std::uint64_t*>(at), (mib << 20) / kPage};
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < memory.pages; ++i) mark(memory, i);
  std::printf("write_s %g\nwritten_bytes %llu\n", us_since(start) / 1e6,
              static_cast<unsigned long long>(counters.bytes_written.load()));
  read_sweep(memory);  // what is still to be written leaves
  const auto before = counters.bytes_read.load();
  const double seconds = read_sweep(memory);
  std::printf("read_s %g\nread_bytes %llu\n", seconds,
              static_cast<unsigned long long>(counters.bytes_read.load() - before));
  misses(memory, counters);
  return 0;
}

}  // namespace
}  // namespace farheap::bench

int main(int count, char** words) {
  if (count != 2) return std::fprintf(stderr, "stores_paging MIB\n"), 2;
  return farheap::bench::run(std::stoull(words[1]));
}
