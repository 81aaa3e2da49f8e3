// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/units.hpp"
#include "plan/lru.hpp"
#include "plan/memory_curve.hpp"
#include "plan/optimum.hpp"
#include "plan/sampled_world.hpp"

namespace farheap::plan {

namespace {

using base::kPageBytes;

constexpr double kLevels[] = {0.9, 0.7, 0.5};
constexpr double kLocked = 0.8;                 // of memory: the seeds' share
constexpr double kLess = 0.9, kMuchMore = 1.5;  // replays were wrong by up to 1.25 (docs/benchmarks/record.md)
constexpr unsigned kPoints = 20;

Uses uses_of(std::span<const ReplayedTouch> touches, std::uint64_t pages) {
  Uses all;
  all.pages = static_cast<std::uint32_t>(pages);
  std::vector<bool> is_known(pages);
  for (const ReplayedTouch& one : touches) {
    if (!one.drop) all.uses.push_back({one.page, !is_known[one.page], one.write});
    is_known[one.page] = !one.drop;
  }
  return all;
}

std::vector<bool> locked_pages(const SampledWorld& world, const MadePlan& made, const HintPlan& hints,
                               std::uint64_t memory_pages) {
  std::vector<LiveObject> objects = world.places_of(recorded_objects(*made.process, hints.phase()));
  std::ranges::sort(objects, {}, &LiveObject::first);
  std::vector<bool> is_locked(world.pages());
  const auto room = static_cast<std::uint64_t>(kLocked * static_cast<double>(memory_pages)) * kPageBytes;
  for (const auto& ranges : choose_locked(hints, objects, room)) {
    for (const PageRange& range : ranges) {
      for (std::uint64_t page = range.first / kPageBytes; page < (range.first + range.bytes) / kPageBytes; ++page) {
        is_locked[page] = true;
      }
    }
  }
  return is_locked;
}

double reads_beside_locked(const SampledWorld& world, Uses uses, const MadePlan& made, const HintPlan& hints,
                           const ScoredLevel& level) {
  const double pages = static_cast<double>(level.memory_bytes) / kPageBytes;
  const auto memory = static_cast<std::uint64_t>(pages / world.scale());
  const std::vector<bool> locked = locked_pages(world, made, hints, memory);
  std::erase_if(uses.uses, [&](const PageUse& use) { return locked[use.page]; });
  const auto taken = static_cast<std::uint64_t>(std::ranges::count(locked, true));
  const std::uint64_t left = std::max<std::uint64_t>(memory - std::min(memory, taken), 1);
  return static_cast<double>(lru_reads(uses, left)) * world.scale();
}

}  // namespace

bool PlanScore::is_in_vain() const {
  const auto cost = [](const PagerPrediction& one) { return one.seconds > 0 ? one.seconds : one.reads; };
  const auto is_less = [&](const ScoredLevel& level) { return cost(level.planned) < kLess * cost(level.planless); };
  const auto is_much_more = [&](const ScoredLevel& level) {
    return cost(level.planned) > kMuchMore * cost(level.planless);
  };
  return std::ranges::none_of(levels, is_less) && std::ranges::any_of(levels, is_much_more);
}

PlanScore score_plan(const MadePlan& made, const Speeds& speeds, const HintPlan* hints) {
  PlanScore score;
  const profile::Touches& touches = made.process->touches;
  const MemoryCurve all = memory_curve(touches, kPoints);
  MemoryCurve levels = all;
  levels.points.clear();
  for (const double level : kLevels) {
    const auto nearest = std::ranges::min_element(all.points, {}, [&](const MemoryPoint& point) {
      return std::abs(static_cast<double>(point.memory_bytes) - level * static_cast<double>(all.whole_bytes));
    });
    const bool is_new = levels.points.empty() || nearest->memory_bytes < levels.points.back().memory_bytes;
    if (nearest != all.points.end() && nearest->memory_bytes < all.whole_bytes && is_new) {
      levels.points.push_back(*nearest);
    }
  }
  const auto planless = pager_curve(touches, levels, speeds);
  const auto planned = pager_curve(touches, levels, speeds, &made);
  for (std::size_t i = 0; i < levels.points.size(); ++i) {
    const MemoryPoint& point = levels.points[i];
    ScoredLevel one{.memory_bytes = point.memory_bytes,
                    .share = static_cast<double>(point.memory_bytes) / static_cast<double>(all.whole_bytes),
                    .lru = point.lru_misses,
                    .planless = planless[i],
                    .planned = planned[i],
                    .best = point.best_misses};
    score.levels.push_back(one);
  }
  if (hints != nullptr && !score.levels.empty()) {
    const SampledWorld world(touches, all.pages_for_one);
    const Uses uses = uses_of(world.touches(), world.pages());
    for (ScoredLevel& level : score.levels) level.locked = reads_beside_locked(world, uses, made, *hints, level);
  }
  return score;
}

}  // namespace farheap::plan
