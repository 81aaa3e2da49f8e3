// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which commits of a kept segment are being read by other processes, so that its writer keeps what they refer to.
//
// How a reader comes by a commit that stays: it reads the superblocks, takes a lease on the newest commit C, and reads
// them again. If no commit after C + 1 is there, C is safe: what C refers to is given away by the commit after next at
// the earliest, and whoever makes that one asks for leases after its superblock is written. Otherwise it begins anew.
//
// Thread-safety: the owner locks.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>

namespace farheap::segment {

class VersionLeases {
 public:
  static constexpr std::uint64_t kNobody = UINT64_MAX;
  virtual ~VersionLeases() = default;
  // A reader's, instead of the one it had. It ends with its process at the latest.
  [[nodiscard]] virtual Status take(std::uint64_t commit) = 0;
  // The oldest commit that somebody has a lease on, or kNobody. On error nothing may be given away.
  [[nodiscard]] virtual Result<std::uint64_t> oldest() = 0;
};

}  // namespace farheap::segment
