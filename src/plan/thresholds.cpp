// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/thresholds.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "plan/similarity.hpp"

namespace farheap::plan {

namespace {

constexpr std::size_t kMostValues = 4;  // of each threshold, beside none and all: the tree is merged 216 times at most
constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::vector<SiteUse> uses_of(const Phase& phase, std::span<const std::uint64_t> site_bytes) {
  std::vector<SiteUse> uses;
  for (const profile::SiteCount& one : phase.accesses.sites()) {
    if (one.site < site_bytes.size()) uses.push_back({one.site, site_bytes[one.site], one.accesses});
  }
  return uses;
}

// The merged contexts' accesses are the phase's, so they need not be looked at one by one.
double accesses_away(std::span<const SiteUse> uses, std::span<const KeptPart> kept) {
  double away = 0;
  auto part = kept.begin();
  for (const SiteUse& use : uses) {
    std::uint64_t bytes = 0;
    for (; part != kept.end() && part->site == use.site; ++part) bytes += part->bytes;
    const double share =
        use.bytes == 0 ? 1 : std::min(1.0, static_cast<double>(bytes) / static_cast<double>(use.bytes));
    away += static_cast<double>(use.accesses) * (1 - share);
  }
  return away;
}

// At most kMostValues, evenly out of those that occur, and one that is above them all.
std::vector<double> candidates(std::vector<double> values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::vector<double> chosen = {0};
  for (std::size_t i = 0; i < kMostValues && !values.empty(); ++i) {
    chosen.push_back(values[i * (values.size() - 1) / (kMostValues - 1)]);
  }
  chosen.push_back(kInfinite);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

struct Values {
  std::vector<double> seconds, object_similarity, hotness_similarity;
};

Values values_in(const profile::ContextTree& tree) {
  Values values;
  // With their children, since those may be merged into them.
  std::vector<double> seconds(tree.size());
  for (auto next = static_cast<profile::ContextIndex>(tree.size()); next-- > 1;) {
    const profile::Context& own = tree[next];
    seconds[next] += own.seconds;
    seconds[own.parent] += seconds[next];
    values.seconds.push_back(seconds[next]);
    const profile::AccessCounts& parents = tree[own.parent].accesses;
    values.object_similarity.push_back(object_similarity(own.accesses, parents));
    values.hotness_similarity.push_back(hotness_similarity(own.accesses, parents));
  }
  return values;
}

}  // namespace

double cost_of(const profile::ContextTree& tree, const Phases& phases, std::span<const std::uint64_t> site_bytes,
               const CostModel& model) {
  double cost = 0;
  std::vector<double> hints;  // of each phase, when it begins or goes on: a parent stands before its children
  for (const Phase& phase : phases.phases) {
    const auto uses = uses_of(phase, site_bytes);
    const auto kept = choose_kept(uses, model.room_bytes, model.priority);
    cost += accesses_away(uses, kept) * model.seconds_per_access_away;
    hints.push_back(static_cast<double>(kept.size()));
    // Into it, and back to the phase around it.
    const bool is_root = phase.head == profile::kRoot;
    const double back = is_root ? 0 : hints[phases.of_context[tree[phase.head].parent]];
    const double entries = is_root ? 1 : static_cast<double>(tree[phase.head].entries);
    cost += entries * (hints.back() + back) * model.seconds_per_hint;
  }
  return cost;
}

MergeThresholds cheapest_thresholds(const profile::ContextTree& tree, std::span<const std::uint64_t> site_bytes,
                                    const CostModel& model) {
  Values values = values_in(tree);
  const auto seconds = candidates(std::move(values.seconds));
  const auto objects = candidates(std::move(values.object_similarity));
  const auto hotness = candidates(std::move(values.hotness_similarity));
  MergeThresholds cheapest;
  double least_cost = kInfinite;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const double least_seconds : seconds) {
    for (const double object : objects) {
      for (const double hot : hotness) {
        const MergeThresholds tried = {least_seconds, object, hot};
        const Phases phases = merge_contexts(tree, tried);
        const double cost = cost_of(tree, phases, site_bytes, model);
        if (std::pair(cost, phases.phases.size()) < std::pair(least_cost, fewest)) {
          cheapest = tried;
          least_cost = cost;
          fewest = phases.phases.size();
        }
      }
    }
  }
  return cheapest;
}

}  // namespace farheap::plan
