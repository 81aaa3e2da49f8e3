// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/pager_curve.hpp"

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "plan/sampled_world.hpp"

namespace farheap::plan {

std::vector<PagerPrediction> pager_curve(const profile::Touches& touches, const MemoryCurve& curve,
                                         const Speeds& speeds, const MadePlan* made) {
  std::vector<PagerPrediction> all(curve.points.size());
  const SampledWorld world(touches, curve.pages_for_one);
  if (world.is_empty()) return all;
  const std::vector<ReplayedTouch> uses = world.touches();
  ReplayOptions options;
  if (made != nullptr) {
    for (const PlannedPhase& phase : made->plan.phases) {
      options.orders.push_back(world.order_of(phase, recorded_objects(*made->process, phase)));
    }
  }
  const auto own = std::ranges::count(uses, false, &ReplayedTouch::drop);
  options.clock = world.clock(clock_of(speeds, static_cast<double>(own) * world.scale()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const MemoryPoint& point = curve.points[i];
    const bool is_timed = speeds.seconds_a_page > 0;
    all[i].seconds = is_timed ? speeds.own_seconds : 0;
    if (point.memory_bytes >= curve.whole_bytes) continue;  // then nothing is paged
    const double memory = static_cast<double>(point.memory_bytes) / base::kPageBytes / world.scale();
    const ReplayCounts counts = replay(uses, world.pages(), static_cast<std::uint64_t>(std::llround(memory)), options);
    all[i].reads = static_cast<double>(counts.pages_read) * world.scale();
    if (is_timed) all[i].seconds = counts.seconds;
  }
  return all;
}

}  // namespace farheap::plan
