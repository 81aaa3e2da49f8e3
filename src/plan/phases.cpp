// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/phases.hpp"

#include <utility>

#include "plan/similarity.hpp"

namespace farheap::plan {

using profile::ContextIndex;

namespace {

bool is_like(const profile::AccessCounts& own, const profile::AccessCounts& parents,
             const MergeThresholds& thresholds) {
  return object_similarity(own, parents) > thresholds.object_similarity &&
         hotness_similarity(own, parents) > thresholds.hotness_similarity;
}

}  // namespace

Phases merge_contexts(const profile::ContextTree& tree, const MergeThresholds& thresholds) {
  // Each context with all that was merged into it. The walk takes children before their parents.
  std::vector<Phase> gathered(tree.size());
  std::vector<bool> is_merged(tree.size(), false);
  for (ContextIndex next = static_cast<ContextIndex>(tree.size()); next-- > 0;) {
    const profile::Context& own = tree[next];
    Phase& all = gathered[next];
    all.head = next;
    all.seconds += own.seconds;
    all.accesses += own.accesses;
    if (next == profile::kRoot) break;
    if (all.seconds >= thresholds.least_seconds && !is_like(all.accesses, tree[own.parent].accesses, thresholds))
      continue;
    is_merged[next] = true;
    gathered[own.parent].seconds += all.seconds;
    gathered[own.parent].accesses += all.accesses;
  }
  Phases result;
  result.of_context.resize(tree.size());
  for (ContextIndex next = 0; next < tree.size(); ++next) {
    if (is_merged[next]) {
      result.of_context[next] = result.of_context[tree[next].parent];
      continue;
    }
    result.of_context[next] = static_cast<std::uint32_t>(result.phases.size());
    result.phases.push_back(std::move(gathered[next]));
  }
  return result;
}

}  // namespace farheap::plan
