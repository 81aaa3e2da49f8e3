// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/page_map.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/system_call.hpp"
#include "base/units.hpp"
#include "os/own_descriptors.hpp"
#include "os/uffd_abi.hpp"

namespace farheap::os {

namespace {

// A descriptor of pagemap shows the process that opened it, also to its children. Both in one word, so that a fork
// between two stores cannot tear them.
struct OpenedMap {
  std::int32_t file;
  std::int32_t process;
};
std::atomic<OpenedMap> g_opened{OpenedMap{-1, 0}};

int page_map_of(std::int32_t process) {
  OpenedMap opened = g_opened.load(std::memory_order_acquire);
  if (opened.process == process) return opened.file;
  // The parent's goes first: it may be in the place of the last descriptor to be had.
  if (opened.file >= 0 && g_opened.compare_exchange_strong(opened, OpenedMap{-1, 0})) release_descriptor(opened.file);
  const int file = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const OpenedMap mine{keep_descriptor(file), process};
  keep_from_children(mine.file);
  opened = OpenedMap{-1, 0};
  if (g_opened.compare_exchange_strong(opened, mine)) return mine.file;
  release_descriptor(mine.file);  // another thread was faster
  return opened.process == process ? opened.file : -1;
}

}  // namespace

bool read_page_map(const void* at, std::span<PageEntry> entries) {
  constexpr std::uint64_t kPresent = 1ull << 63, kSwapped = 1ull << 62, kExclusive = 1ull << 56;
  const int file = page_map_of(getpid());
  if (file < 0) return false;
  std::uint64_t raw[512];
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(at) / 4096;
  for (std::size_t done = 0; done < entries.size();) {
    const std::size_t count = std::min<std::size_t>(entries.size() - done, 512);
    const ssize_t size = pread(file, raw, count * 8, static_cast<off_t>((first + done) * 8));
    if (size < 8) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(size) / 8; ++i, ++done) {
      entries[done].present = (raw[i] & (kPresent | kSwapped)) != 0;
      entries[done].exclusive = (raw[i] & kExclusive) != 0;
    }
  }
  return true;
}

bool find_in_memory(const void* at, std::span<PageEntry> entries) {
  unsigned char in_memory[512];
  for (std::size_t done = 0; done < entries.size();) {
    const std::size_t count = std::min<std::size_t>(entries.size() - done, 512);
    if (syscall(SYS_mincore, static_cast<const char*>(at) + done * 4096, count * 4096, in_memory) != 0) return false;
    for (std::size_t i = 0; i < count; ++i, ++done) entries[done] = {(in_memory[i] & 1) != 0, false};
  }
  return true;
}

bool take_written(const void* at, std::size_t pages, WrittenPages& written) {
  const int file = page_map_of(getpid());
  if (file < 0) return false;
  written.reset();
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  abi::PageRegion runs[512 / 2];  // the least gap is a page
  abi::PagemapScan scan{};
  scan.size = sizeof scan;
  scan.flags = abi::kScanWpMatching;
  scan.start = begin;
  scan.end = begin + pages * base::kPageBytes;
  scan.vec = reinterpret_cast<std::uintptr_t>(runs);
  scan.vec_len = std::size(runs);
  scan.category_mask = abi::kPageIsPresent | abi::kPageIsWritten;
  scan.return_mask = abi::kPageIsWritten;
  const long found = base::system_call(SYS_ioctl, file, abi::kPagemapScan, &scan);
  for (long i = 0; i < found; ++i) {
    const std::uintptr_t end = (runs[i].end - begin) / base::kPageBytes;
    for (std::uintptr_t page = (runs[i].start - begin) / base::kPageBytes; page < end; ++page) written.set(page);
  }
  return found >= 0;
}

}  // namespace farheap::os
