// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/units.hpp"
#include "plan/lru.hpp"
#include "plan/memory_curve.hpp"
#include "plan/optimum.hpp"
#include "plan/replay.hpp"
#include "plan/sampled_world.hpp"

namespace farheap::plan {

namespace {

using base::kPageBytes;

constexpr double kLevels[] = {0.9, 0.7, 0.5};
constexpr unsigned kSettling = 2, kCounted = 2;  // rounds beside those that the profile saw
constexpr double kLocked = 0.8;                  // of memory: the seeds' share
constexpr double kMuch = 1.1;

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

// Those objects of a plan that were seen to be somewhere, each place once.
std::vector<LiveObject> placed(const SampledWorld& world, std::span<const LiveObject> objects) {
  std::vector<LiveObject> found;
  for (const LiveObject& object : objects) {
    const LiveObject one = world.place_of(object);
    if (one.bytes != 0 && std::ranges::find(found, one) == found.end()) found.push_back(one);
  }
  return found;
}

std::vector<bool> locked_pages(const SampledWorld& world, const MadePlan& made, const HintPlan& hints,
                               std::uint64_t memory_pages) {
  std::vector<LiveObject> objects = placed(world, recorded_objects(*made.process, hints.plan));
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

}  // namespace

bool PlanScore::is_in_vain() const {
  const auto much = [](double more, double less) { return more > kMuch * less; };
  return std::ranges::none_of(levels, [&](const auto& one) { return much(one.planless, one.planned); }) &&
         std::ranges::any_of(levels, [&](const auto& one) { return much(one.planned, one.planless); });
}

PlanScore score_plan(const MadePlan& made, const HintPlan* hints) {
  PlanScore score;
  const MemoryCurve curve = memory_curve(*made.touches, 1);
  const SampledWorld world(*made.touches, curve.pages_for_one);
  if (curve.points.empty() || world.is_empty()) return score;
  const Round round{made.plan.once, made.plan.round, made.plan.once + made.plan.round};
  score.of_round = round.length != 0;
  const std::vector<ReplayedTouch> all = world.touches(round, score.of_round ? kSettling + kCounted : 0);
  const std::size_t from = score.of_round ? world.touches(round, kSettling).size() : 0;
  const double of_each = world.scale() / (score.of_round ? kCounted : 1);

  Plan smaller = made.plan;
  smaller.window_pages = static_cast<std::uint32_t>(std::lround(made.plan.window_pages / world.scale()));
  const std::vector<LiveObject> objects = placed(world, recorded_objects(*made.process, made.plan));
  const auto order = std::make_shared<const pager::PageOrder>(order_of(smaller, objects));
  const Uses uses = uses_of(all, world.pages());
  const Uses before = uses_of(std::span(all).first(from), world.pages());
  for (const double level : kLevels) {
    const auto memory = static_cast<std::uint64_t>(std::llround(level * static_cast<double>(world.pages())));
    if (memory == 0) continue;
    CandidateReads one;
    one.memory_bytes = static_cast<std::uint64_t>(level * static_cast<double>(curve.whole_bytes));
    one.share = level;
    const auto driven = [&](std::shared_ptr<const pager::PageOrder> expected) {
      const ReplayOptions options{.order = std::move(expected), .counted_from = from};
      return of_each * static_cast<double>(replay(all, world.pages(), memory, options).pages_read);
    };
    one.planless = driven(nullptr);
    one.planned = driven(order);
    one.lru = of_each * static_cast<double>(lru_reads(uses, memory) - lru_reads(before, memory));
    one.best = of_each *
               static_cast<double>(optimum(uses, memory).pages_read - optimum(before, memory).pages_read);
    if (hints != nullptr) {
      const std::vector<bool> locked = locked_pages(world, made, *hints, memory);
      const auto free = [&](const Uses& some) {
        Uses rest = some;
        std::erase_if(rest.uses, [&](const PageUse& use) { return locked[use.page]; });
        const auto pages = static_cast<std::uint64_t>(std::ranges::count(locked, true));
        return lru_reads(rest, std::max<std::uint64_t>(memory - std::min(memory, pages), 1));
      };
      one.locked = of_each * static_cast<double>(free(uses) - free(before));
    }
    score.levels.push_back(one);
  }
  return score;
}

}  // namespace farheap::plan
