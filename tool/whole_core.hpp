// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the pages that had left back into a core: from the parts of the core that hold what was staged, and from the
// store (pager/core_index.hpp says what the runtime leaves for this).
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <farheap/store.hpp>
#include <functional>
#include <string>

#include "core_file.hpp"

namespace farheap::tool {

// What the runtime wrote into the core. The numbers are as they stand there, whatever they are.
struct CoreNotes {
  std::uint64_t base = 0;     // of the heap
  std::uint64_t staging = 0;  // of its pages on probation
  std::uint64_t entries = 0;
  std::uint64_t pages = 0;  // entries that the core holds
  std::string store;
};

// What stands in a header as the runtime writes it, of what is named `subject`. Requires: it begins with the magic.
[[nodiscard]] Result<CoreNotes> read_notes(std::span<const std::byte> header, const std::string& subject);
// Why there are none.
[[nodiscard]] tl::unexpected<Error> no_notes(const std::string& subject);

// kNotFound if the runtime left none; kUnavailable if they are of a newer format.
[[nodiscard]] Result<CoreNotes> find_notes(const CoreFile& core);

struct Filled {
  std::uint64_t from_staging = 0;  // pages
  std::uint64_t from_store = 0;
  std::uint64_t missing = 0;  // left as zeros: the store does not have them, or not as they were written
  std::string why;            // the first of those, in words
};

// Reads blocks of a page each; every entry gets its outcome.
using ReadBlocks = std::function<Status(std::span<Get>)>;

// Fails where the core cannot be written, or is not what its notes say.
[[nodiscard]] Result<Filled> fill_in(CoreFile& core, const CoreNotes& notes, const ReadBlocks& read_blocks);

}  // namespace farheap::tool
