// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// stores_own ENGINE PLACE MIB: what the engine's own client does at best, and what it costs to put pages into place.
//   write_us_mib, read_us_mib   in its best batches, in order, per MiB
//   place_us_mib                UFFDIO_COPY of what was read, per MiB
//   fresh_us_mib                first touch of new memory, per MiB
//   get_us                      one page, at random, back to back: median
// stores_own ENGINE PLACE accesses COUNT: so many accesses to single bytes of one page, one after the other.
//   put_part_us, get_part_us    an access: the mean
#include "stores/own.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "os/userfault.hpp"
#include "stores/pages.hpp"

namespace farheap::bench {
namespace {

constexpr std::size_t kMiB = 1 << 20;

char* new_memory(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::abort();
  madvise(at, bytes, MADV_NOHUGEPAGE);
  return static_cast<char*>(at);
}

struct Engine {
  const char* name;
  std::unique_ptr<OwnClient> (*open)(const std::string& place);
};
constexpr Engine kEngines[] = {
    {"file", own_file},         {"store", own_store},
#ifdef FARHEAP_HAVE_LMDB
    {"lmdb", own_lmdb},
#endif
#ifdef FARHEAP_HAVE_HIREDIS
    {"redis", own_redis},       {"redis-cluster", own_redis_cluster},
#endif
#ifdef FARHEAP_HAVE_ROCKSDB
    {"rocksdb", own_rocksdb},
#endif
#ifdef FARHEAP_HAVE_GRPC
    {"bigtable", own_bigtable}, {"datastore", own_datastore},
    {"etcd", own_etcd},         {"spanner", own_spanner},
#endif
};

std::unique_ptr<OwnClient> open_own(std::string_view name, const std::string& place) {
  for (const auto& engine : kEngines) {
    if (engine.name == name) return engine.open(place);
  }
  std::fprintf(stderr, "stores_own: not in this build: %s\n", std::string(name).c_str());
  return nullptr;
}

bool sweep_write(OwnClient& client, std::uint64_t pages) {
  char* const buffer = new_memory(client.batch() * kPage);
  double us = 0;
  for (std::uint64_t first = 0; first < pages; first += client.batch()) {
    const std::size_t count = std::min<std::uint64_t>(client.batch(), pages - first);
    for (std::size_t i = 0; i < count; ++i) {
      fill_page(reinterpret_cast<std::uint64_t*>(buffer + i * kPage), first + i);
    }
    const auto start = Clock::now();
    if (!client.write(first, count, buffer)) return false;
    us += us_since(start);
  }
  std::printf("write_us_mib %g\n", us / static_cast<double>(pages * kPage) * kMiB);
  return true;
}

// Into a window of memory where every page is missing.
bool sweep_read(OwnClient& client, std::uint64_t pages) {
  auto fault = os::Userfault::open({.move = false, .kernel_faults = false});
  if (!fault) return std::fprintf(stderr, "stores_own: %s\n", fault.error().message().c_str()), false;
  char* const buffer = new_memory(client.batch() * kPage);
  char* const window = new_memory(client.batch() * kPage);
  if (!fault->register_range(window, client.batch() * kPage)) return false;
  double read_us = 0, place_us = 0;
  for (std::uint64_t first = 0; first < pages; first += client.batch()) {
    const std::size_t count = std::min<std::uint64_t>(client.batch(), pages - first);
    const std::size_t bytes = count * kPage;
    auto start = Clock::now();
    if (!client.read(first, count, buffer)) return false;
    read_us += us_since(start);
    start = Clock::now();
    std::size_t done = 0;
    if (fault->copy(window, buffer, bytes, done) != 0) return false;
    place_us += us_since(start);
    for (std::size_t i = 0; i < count; ++i) {
      const auto* const page = reinterpret_cast<const std::uint64_t*>(window + i * kPage);
      if (!is_page(page, first + i)) return std::fprintf(stderr, "stores_own: page %zu is wrong\n", first + i), false;
    }
    madvise(window, bytes, MADV_DONTNEED);
  }
  const double mib = static_cast<double>(pages * kPage) / kMiB;
  std::printf("read_us_mib %g\nplace_us_mib %g\n", read_us / mib, place_us / mib);
  return true;
}

void touch_fresh() {
  constexpr std::size_t kBytes = 64 * kMiB;
  char* const memory = new_memory(kBytes);
  const auto start = Clock::now();
  for (std::size_t at = 0; at < kBytes; at += kPage) memory[at] = 1;
  std::printf("fresh_us_mib %g\n", us_since(start) * kMiB / kBytes);
  munmap(memory, kBytes);
}

bool single_gets(OwnClient& client, std::uint64_t pages) {
  char* const buffer = new_memory(kPage);
  std::vector<double> times;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t page = word_of(i, 0) % pages;
    const auto start = Clock::now();
    if (!client.read(page, 1, buffer)) return false;
    times.push_back(us_since(start));
    if (!is_page(reinterpret_cast<const std::uint64_t*>(buffer), page)) return false;
  }
  std::printf("get_us %g\n", median(times));
  return true;
}

// What a call of seed 000's heap test does to a store, by the engine's own client: 100 characters, each by itself.
bool accesses(OwnClient& client, std::size_t count) {
  constexpr std::uint64_t kNumber = 1;
  constexpr std::size_t kBytes = 100, kUncounted = 20;
  char* const page = new_memory(client.batch() * kPage);
  char* const into = new_memory(kPage);
  if (!client.write(kNumber, client.batch(), page)) return false;  // some write in nothing but whole batches
  auto start = Clock::now();
  for (std::size_t i = 0; i < kUncounted + count; ++i) {
    if (i == kUncounted) start = Clock::now();
    page[i % kBytes] = static_cast<char>(i % 128);
    if (!client.put_byte(kNumber, i % kBytes, page)) return false;
  }
  std::printf("put_part_us %g\n", us_since(start) / static_cast<double>(count));
  for (std::size_t i = 0; i < kUncounted + count; ++i) {
    if (i == kUncounted) start = Clock::now();
    const std::size_t offset = i % kBytes;
    if (!client.get_byte(kNumber, offset, into)) return false;
    if (into[offset] != page[offset]) return std::fprintf(stderr, "stores_own: byte %zu is wrong\n", offset), false;
  }
  std::printf("get_part_us %g\n", us_since(start) / static_cast<double>(count));
  return true;
}

}  // namespace
}  // namespace farheap::bench

int main(int count, char** words) {
  using namespace farheap::bench;
  const bool parts = count == 5 && std::strcmp(words[3], "accesses") == 0;
  if (count != 4 && !parts) return std::fprintf(stderr, "stores_own ENGINE PLACE MIB | accesses COUNT\n"), 2;
  const auto client = open_own(words[1], words[2]);
  if (!client) return 1;
  if (parts) return accesses(*client, std::stoull(words[4])) ? 0 : 1;
  const std::uint64_t pages = std::stoull(words[3]) * (kMiB / kPage);
  const bool whole = sweep_write(*client, pages) && sweep_read(*client, pages) && single_gets(*client, pages);
  touch_fresh();
  return whole ? 0 : 1;
}
