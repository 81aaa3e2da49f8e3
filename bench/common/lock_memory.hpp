// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps a program's hottest data in memory, whatever the kernel would rather evict: the best that a program can do
// for itself under kernel swap when it knows its data and not its pager.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace farheap::bench {

// Locks whole pages of the ranges, in the order given, up to `most` bytes. Returns how many bytes are locked, or a
// sentence that says what stood in the way. A page that two neighbouring ranges share is counted once.
tl::expected<std::uint64_t, std::string> lock_memory(const std::vector<std::span<std::byte>>& ranges,
                                                     std::uint64_t most);

}  // namespace farheap::bench
