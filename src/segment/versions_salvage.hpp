// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is whole of a damaged segment, copied into a new one: the snapshots whose maps and pages can be read, and the
// newest state that can be. The maps of free space and the lists of dead slots are not needed for it: they are made
// anew.
//
// Thread-safety: plain functions. Requires: nobody has the source open for writing.
#pragma once

#include <string>
#include <vector>

#include "segment/versions_copy.hpp"

namespace farheap::segment {

struct VersionName {
  std::string snapshot;  // empty: the newest state
  std::uint64_t commit = 0;
  friend bool operator==(const VersionName&, const VersionName&) = default;
  [[nodiscard]] std::string text() const;
};

// The superblocks of a store that are whole, the newer one first. kCorrupt if none is, or none ever was; kUnavailable
// if a newer Farheap wrote one.
[[nodiscard]] Result<std::vector<Superblock>> whole_superblocks(Store& store);

struct Salvaged {
  std::vector<VersionName> kept;  // by age; the last is the newest state
  std::vector<std::string> lost;  // a sentence each
};
// Leaves out what is in `without`, whose loss is told already. The target's segment has the id of the source's.
// kCorrupt if no version is whole.
[[nodiscard]] Result<Salvaged> salvage(Store& source, Store& target, const std::vector<VersionName>& without,
                                       const VersionsCopy::Progress& progress);

}  // namespace farheap::segment
