// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/page_map.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace farheap::os {

void read_page_map(const void* at, std::span<PageEntry> entries) {
  constexpr std::uint64_t kPresent = 1ull << 63, kSwapped = 1ull << 62, kExclusive = 1ull << 56;
  std::fill(entries.begin(), entries.end(), PageEntry{});
  const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::uint64_t raw[512];
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(at) / 4096;
  for (std::size_t done = 0; done < entries.size();) {
    const std::size_t count = std::min<std::size_t>(entries.size() - done, 512);
    const ssize_t size = pread(file, raw, count * 8, static_cast<off_t>((first + done) * 8));
    if (size <= 0) break;
    for (std::size_t i = 0; i < static_cast<std::size_t>(size) / 8; ++i, ++done) {
      entries[done].present = (raw[i] & (kPresent | kSwapped)) != 0;
      entries[done].exclusive = (raw[i] & kExclusive) != 0;
    }
  }
  close(file);
}

}  // namespace farheap::os
