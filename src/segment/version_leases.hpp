// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which commits of a kept segment are being read by other processes, so that its writer keeps what they refer to.
//
// How a reader comes by a commit that stays: it reads the superblocks, takes a lease on the newest commit C, and reads
// them again. If no commit after C + 1 is there, C is safe: what C refers to is given away by the commit after next at
// the earliest, and whoever makes that one asks for leases after its superblock is written. Otherwise it begins anew.
//
// And which slots its writer may write. What is sent to a store on a server may arrive late: after its sender was
// stopped, cut off or killed, and after another has taken over. So nobody writes a slot at which something of an
// earlier writer, or something that was not answered, may still arrive: those lie below the fence, and numbers below
// it are never used again.
//
// Thread-safety: the owner locks, but for fence() and is_anybody_late().
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
  // A writer's: no slot below is written. It only ever rises.
  [[nodiscard]] virtual std::uint64_t fence() const { return 0; }
  // When a writer opens: something that was sent before, a commit too, may still arrive.
  [[nodiscard]] virtual bool is_anybody_late() const { return false; }
};

}  // namespace farheap::segment
