// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A second kept file store with the bytes of a first one, which the file system keeps once until one of the two is
// changed (reflinks: XFS, Btrfs, bcachefs, overlays and network file systems over them).
//
// Thread-safety: plain functions.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <string>

namespace farheap::store {

// Makes FILE `to`, and its table, out of the blocks of FILE `from` that come after the first `without` ones. False, and
// nothing is left: the file system does not do that, or not between these two places. Requires: blocks are pages,
// nobody writes to `from` meanwhile, and `to` is not there.
[[nodiscard]] bool clone_kept_file(const std::string& from, const std::string& to, std::uint64_t without);

}  // namespace farheap::store
