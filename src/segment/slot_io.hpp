// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs of slots to and from a store, in entries and batches that keep to its limits. A slot is a block of one page.
//
// Thread-safety: plain functions; the store's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "farheap/store.hpp"

namespace farheap::segment {

template <class Bytes>
struct SlotRun {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  Bytes bytes = nullptr;
  [[nodiscard]] std::size_t size() const { return count * base::kPageBytes; }
};
using SlotRead = SlotRun<std::byte*>;
using SlotWrite = SlotRun<const std::byte*>;

// One slot more: it joins the last run if it follows it, in the store and in memory, and the run is not longer than
// `largest` bytes then.
template <class Bytes>
void append(std::vector<SlotRun<Bytes>>& runs, std::uint64_t slot, Bytes bytes, std::size_t largest) {
  if (!runs.empty()) {
    SlotRun<Bytes>& last = runs.back();
    if (last.first + last.count == slot && last.bytes + last.size() == bytes &&
        last.size() + base::kPageBytes <= largest) {
      ++last.count;
      return;
    }
  }
  runs.push_back({slot, 1, bytes});
}

// Runs of slots to be erased: smaller holes cost more than they give back.
inline constexpr std::uint64_t kLeastHole = 16;

// The longest runs for append(). Of reads, several in flight are faster than one large one.
[[nodiscard]] std::size_t longest_read(const Store& store);
[[nodiscard]] std::size_t longest_write(const Store& store);

// kCorrupt if the store does not have one of them.
[[nodiscard]] Status read_slots(Store& store, std::span<const SlotRead> runs);
[[nodiscard]] Status write_slots(Store& store, std::span<const SlotWrite> runs);

}  // namespace farheap::segment
