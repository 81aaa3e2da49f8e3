// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/kernel_hints.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/units.hpp"

namespace farheap::plan {

using base::kPageBytes;

static std::uint64_t uses_of(const PlannedObject& object) {
  double uses = 0;  // of parts
  for (const auto& part : object.parts) uses += static_cast<double>(part.size());
  const double pages = static_cast<double>(object.bytes) / kPageBytes;
  const double of_parts = uses * pages / static_cast<double>(std::max<std::size_t>(object.parts.size(), 1));
  return static_cast<std::uint64_t>(std::llround(of_parts + static_cast<double>(object.strides.size()) * pages));
}

HintPlan hints_of(Plan plan) {
  PlannedPhase all;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
  std::vector<std::uint64_t> accesses;
  for (PlannedPhase& phase : plan.phases) {
    for (PlannedObject& object : phase.objects) {
      const auto [found, is_new] = known.try_emplace({object.site, object.number}, all.objects.size());
      if (is_new) accesses.push_back(0);
      accesses[found->second] += uses_of(object);
      if (is_new) all.objects.push_back(std::move(object));
    }
    all.once = std::max(all.once, phase.once);
    all.round = std::max(all.round, phase.round);
  }
  plan.phases = {std::move(all)};
  return {std::move(plan), std::move(accesses)};
}

PageRange pages_of(const LiveObject& object) {
  const std::uint64_t first = (object.first + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::uint64_t end = (object.first + object.bytes) / kPageBytes * kPageBytes;
  return {first, end > first ? end - first : 0};
}

std::vector<std::vector<PageRange>> choose_locked(const HintPlan& hints, std::span<const LiveObject> objects,
                                                  std::uint64_t room_bytes, const PriorityModel& model) {
  std::vector<SiteUse> uses;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::uint64_t bytes = pages_of(objects[i]).bytes;
    const std::uint64_t planned = std::max<std::uint64_t>(hints.phase().objects[objects[i].object].bytes, 1);
    const double a_byte = static_cast<double>(hints.accesses[objects[i].object]) / static_cast<double>(planned);
    uses.push_back({static_cast<profile::SiteId>(i), bytes,
                    static_cast<std::uint64_t>(std::llround(a_byte * static_cast<double>(bytes)))});
  }
  std::vector<std::vector<PageRange>> chosen(objects.size());
  for (const KeptPart& part : choose_kept(uses, room_bytes, model)) {
    chosen[part.site].push_back({pages_of(objects[part.site]).first + part.first, part.bytes});
  }
  return chosen;
}

std::vector<PageRange> without(std::span<const PageRange> all, std::span<const PageRange> taken) {
  std::vector<PageRange> left;
  auto other = taken.begin();
  for (const PageRange& range : all) {
    std::uint64_t at = range.first;
    const std::uint64_t end = range.first + range.bytes;
    while (other != taken.end() && other->first + other->bytes <= at) ++other;
    for (auto one = other; one != taken.end() && one->first < end; ++one) {
      if (one->first > at) left.push_back({at, one->first - at});
      at = std::max(at, one->first + one->bytes);
    }
    if (at < end) left.push_back({at, end - at});
  }
  return left;
}

}  // namespace farheap::plan
