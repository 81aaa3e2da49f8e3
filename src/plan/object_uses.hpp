// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a profile says of one object's uses, or of several that follow each other in its place (ObjectNumbers).
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plan/plan.hpp"
#include "plan/round.hpp"
#include "plan/use_times.hpp"

namespace farheap::plan {

struct ObjectLife {
  std::uint64_t first = 0, bytes = 0;
  std::map<std::uint64_t, std::vector<std::uint32_t>> uses;  // by byte, of sampled pages; times ascend
};

struct ObjectUses {
  std::uint32_t site = 0, number = 0;
  std::vector<ObjectLife> lives;

  // Times come in their order. Requires: the byte is in one of the lives; the last one of these counts.
  void use(std::uint64_t byte, std::uint32_t time);
  [[nodiscard]] std::uint64_t uses() const;
  [[nodiscard]] std::uint64_t bytes() const;  // the most
  // Of the uses so many are told by those of the pages beside it, without it, within `near`, or came a round before;
  // and so many would be by chance, because the pages are used so often. `times`: all of the profile's, without a
  // round.
  struct Foreseen {
    double uses = 0, told = 0, by_chance = 0;
    // Of what chance does not tell.
    [[nodiscard]] double share() const;
    Foreseen& operator+=(const Foreseen& other);
  };
  [[nodiscard]] Foreseen foreseen(const PlanTimes& times, std::uint32_t near, const Round& round) const;
  // How far the uses of its pages are from what those beside them tell, one after the other.
  [[nodiscard]] std::vector<double> errors(const PlanTimes& times, const Joining& joining) const;
  // PlannedObject::parts, as many as there are sampled pages, but no more than `most`.
  [[nodiscard]] std::vector<std::vector<PlannedUse>> parts(const PlanTimes& times, const Joining& joining,
                                                           std::size_t most) const;
};

}  // namespace farheap::plan
