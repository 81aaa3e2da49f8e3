// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Follows a program along the uses that a plan's phase has of its objects, and says what it will use next: for advice
// to the kernel at the begin of a use (seed 001, "Syscall Call"). The seed has hints where contexts begin. A program
// that was not compiled anew does not tell that, so a use begins here when one page of a part was seen to come into
// view.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/kernel_hints.hpp"

namespace farheap::plan {

class UseFollower {
 public:
  static constexpr std::uint64_t kPartBytes = std::uint64_t{1} << 20;

  UseFollower() = default;
  // `lead_bytes`: so much of what is next is told ahead. Requires: PlannedPhase::objects has each of `objects`.
  UseFollower(const PlannedPhase& phase, std::span<const LiveObject> objects, std::uint64_t lead_bytes);

  // Parts of the objects, of kPartBytes or more.
  [[nodiscard]] std::span<const PageRange> parts() const { return parts_; }
  // A use of the part has begun: parts whose uses come next. Each is told once for each time that it was used. Nothing
  // for a use that is not planned before half of a round.
  [[nodiscard]] std::vector<std::uint32_t> used(std::uint32_t part);

 private:
  struct Visit {
    std::uint32_t time = 0, part = 0;
  };
  void add(const PlannedObject& object, PageRange pages);
  // Behind the last one of a round its first one comes again; visits_.size() where there is no round.
  [[nodiscard]] std::size_t after(std::size_t visit) const;

  std::vector<PageRange> parts_;
  std::vector<bool> is_told_;  // since its last use
  std::vector<Visit> visits_;  // by time
  std::size_t round_begin_ = 0;
  bool repeats_ = false;
  bool is_placed_ = false;  // a first use was seen
  std::size_t next_ = 0;    // of visits_: what is expected
  std::uint64_t lead_bytes_ = 0;
};

}  // namespace farheap::plan
