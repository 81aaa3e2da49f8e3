// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/pager_curve.hpp"

#include <cmath>

#include "base/units.hpp"
#include "plan/replay.hpp"
#include "plan/sampled_world.hpp"

namespace farheap::plan {

std::vector<double> pager_reads(const profile::Touches& touches, const MemoryCurve& curve) {
  const SampledWorld world(touches, curve.pages_for_one);
  if (world.is_empty()) return std::vector<double>(curve.points.size());
  const std::vector<ReplayedTouch> all = world.touches();
  std::vector<double> reads;
  for (const MemoryPoint& point : curve.points) {
    if (point.memory_bytes >= curve.whole_bytes) {  // then nothing is paged
      reads.push_back(0);
      continue;
    }
    const double memory = static_cast<double>(point.memory_bytes) / base::kPageBytes / world.scale();
    const ReplayCounts counts = replay(all, world.pages(), static_cast<std::uint64_t>(std::llround(memory)));
    reads.push_back(static_cast<double>(counts.pages_read) * world.scale());
  }
  return reads;
}

}  // namespace farheap::plan
