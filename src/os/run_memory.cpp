// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/run_memory.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "os/process_memory.hpp"

namespace farheap::os {

// What a forked process added to what it shares with its parent: new pages, and copies of old ones. Both are minor
// faults; a new huge page is one fault, but then the process has grown by more.
static std::uint64_t added_bytes(const ProcessMemory::Use& use, std::uint64_t inherited) {
  const std::uint64_t grown = use.anonymous_bytes > inherited ? use.anonymous_bytes - inherited : 0;
  return std::min(use.anonymous_bytes, std::max(grown, use.minor_faults * base::kPageBytes));
}

std::uint64_t grown_bytes(const base::RunSlot& slot) {
  const auto use = ProcessMemory::use_of(slot.pid());
  const std::uint64_t inherited = slot.inherited_bytes.load(std::memory_order_relaxed);
  return inherited == 0 || use.anonymous_bytes == 0 ? use.anonymous_bytes : added_bytes(use, inherited);
}

std::uint64_t held_bytes(const base::RunPage& page, const base::RunSlot& slot) {
  const std::int32_t pid = slot.pid();
  if (pid <= 0 || page.is_gone(slot)) return 0;
  if (!page.is_in_own_namespace(slot)) return slot.bytes.load(std::memory_order_relaxed);
  const std::uint64_t grown = grown_bytes(slot);
  if (grown == 0) return 0;  // it has ended, though perhaps nobody has waited for it
  return slot.watched.load(std::memory_order_relaxed) != 0 ? slot.bytes.load(std::memory_order_relaxed) : grown;
}

}  // namespace farheap::os
