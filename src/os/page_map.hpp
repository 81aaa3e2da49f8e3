// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which pages of this process are in memory, and which were written to: /proc/self/pagemap (Linux,
// admin-guide/mm/pagemap.rst).
//
// Thread-safety: any thread; allocates nothing. Its descriptor is kept open, because a program may use up all there
// are; a forked child opens its own.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>

namespace farheap::os {

struct PageEntry {
  bool present = false;    // in memory or in kernel swap
  bool exclusive = false;  // mapped by nobody else
};

// One entry a page from `at` on. False when pagemap cannot be read: nothing is known of the pages then, and whoever
// took them for absent would lose them.
[[nodiscard]] bool read_page_map(const void* at, std::span<PageEntry> entries);

// For a process that may not read it (one that has changed its user): which pages are in memory for sure. Of the others
// nothing is known. False if that cannot be had either.
[[nodiscard]] bool find_in_memory(const void* at, std::span<PageEntry> entries);

// Which of these pages were written to since they were asked about before, or since they came there; from now on they
// are watched for the next time. What is not registered with a Userfault that notes writes is passed by. False if the
// kernel does not say. Requires: pages <= 512.
using WrittenPages = std::bitset<512>;
[[nodiscard]] bool take_written(const void* at, std::size_t pages, WrittenPages& written);

}  // namespace farheap::os
