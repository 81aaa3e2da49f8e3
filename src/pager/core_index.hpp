// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a core holds so that `farheap core` finds the pages that are not in their places (format 1; docs/formats.md):
// a header at the beginning of a part of the core, and an entry for each page of the heap that was handed out. Only
// made with whole_core=on. The pager writes the states, the block map the slots, each under its own mutex.
//
// Thread-safety: entries are atomics; hold_until() is called by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <memory>
#include <string_view>

#include "base/units.hpp"
#include "os/mapping.hpp"

namespace farheap::pager {

struct CorePage {
  std::atomic<std::uint32_t> slot_and_one;  // the block of the store that holds the page; 0: none
  std::atomic<std::uint8_t> state;          // PageState
};
static_assert(sizeof(CorePage) == 8, "a format");

struct CoreHeader {
  char magic[8];
  std::uint32_t format;
  std::uint32_t page_bytes;
  std::uint64_t base;               // addresses in the process: of the heap,
  std::uint64_t staging;            // of the pages on probation (those of page N at the same offset),
  std::uint64_t entries;            // and of the entries
  std::atomic<std::uint64_t> held;  // how many of them the core has
  char store[3072];                 // its URI, ended by a zero
};
inline constexpr char kCoreMagic[8] = {'F', 'H', 'C', 'O', 'R', 'E', '\r', '\n'};
inline constexpr std::uint32_t kCoreFormat = 1;

class CoreIndex {
 public:
  // kInvalidArgument if the URI is too long; kNoSpace without addresses for the entries.
  [[nodiscard]] static Result<std::unique_ptr<CoreIndex>> make(const std::byte* base, std::byte* staging,
                                                               std::uint64_t capacity_pages, std::string_view store);
  [[nodiscard]] CorePage* pages() const;
  // Cores hold what is staged, and the entries, of the first `bytes` of the heap.
  void hold_until(std::size_t bytes);

 private:
  explicit CoreIndex(os::Mapping mapping) : mapping_(std::move(mapping)) {}
  [[nodiscard]] CoreHeader& header() const;
  os::Mapping mapping_;  // a page that is in no core, so that the header begins its part; the header; the entries
};

}  // namespace farheap::pager
