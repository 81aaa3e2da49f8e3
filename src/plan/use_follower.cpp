// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/use_follower.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace farheap::plan {

using base::kPageBytes;

UseFollower::UseFollower(const PlannedPhase& phase, std::span<const LiveObject> objects, std::uint64_t lead_bytes)
    : lead_bytes_(lead_bytes) {
  for (const LiveObject& one : objects) add(phase.objects[one.object], pages_of(one));
  std::ranges::stable_sort(visits_, {}, &Visit::time);
  const auto begin = std::ranges::lower_bound(visits_, phase.once, {}, &Visit::time);
  round_begin_ = static_cast<std::size_t>(begin - visits_.begin());
  repeats_ = phase.round != 0 && round_begin_ < visits_.size();
  is_told_.assign(parts_.size(), false);
}

// Of several planned parts the one in the middle tells when they are used.
void UseFollower::add(const PlannedObject& object, PageRange pages) {
  const std::uint64_t planned = object.parts.size();
  const std::uint64_t count = std::min(pages.bytes / kPartBytes, planned);
  const std::uint64_t all_pages = pages.bytes / kPageBytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = all_pages * i / count, end = all_pages * (i + 1) / count;
    const auto part = static_cast<std::uint32_t>(parts_.size());
    parts_.push_back({pages.first + first * kPageBytes, (end - first) * kPageBytes});
    for (const PlannedUse& use : object.parts[(2 * i + 1) * planned / (2 * count)]) {
      visits_.push_back({use.time, part});
    }
  }
}

std::size_t UseFollower::after(std::size_t visit) const {
  if (visit + 1 < visits_.size()) return visit + 1;
  return repeats_ ? round_begin_ : visits_.size();
}

std::vector<std::uint32_t> UseFollower::used(std::uint32_t part) {
  is_told_[part] = false;
  std::size_t at = next_;
  std::size_t looked = 0;
  const std::size_t all = visits_.size();
  const std::size_t most = is_placed_ ? (repeats_ ? all - round_begin_ : all) / 2 + 1 : all;
  while (at < visits_.size() && visits_[at].part != part && ++looked < most) at = after(at);
  if (at >= visits_.size() || visits_[at].part != part) return {};
  next_ = after(at);
  is_placed_ = true;
  std::vector<std::uint32_t> told;
  std::uint64_t bytes = 0;
  std::size_t steps = 0;
  for (at = next_; at < visits_.size() && bytes < lead_bytes_ && steps < visits_.size(); at = after(at), ++steps) {
    const std::uint32_t coming = visits_[at].part;
    bytes += parts_[coming].bytes;
    if (coming == part || is_told_[coming]) continue;
    is_told_[coming] = true;
    told.push_back(coming);
  }
  return told;
}

}  // namespace farheap::plan
