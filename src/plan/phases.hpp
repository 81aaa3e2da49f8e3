// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From contexts to phases: a context that is too short to matter, or that uses memory as its parent does, is merged
// into its parent (seed 001, "context merge"; seed 004, "Verbose Contexts to Meaningful Phases").
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/context_tree.hpp"

namespace farheap::plan {

struct MergeThresholds {
  // A context is merged if it and what was merged into it take less time than this,
  double least_seconds = 0.34;
  // or if both similarities to its parent are above these. The seed's object similarity of 1 is taken as 1 %.
  double object_similarity = 1;
  double hotness_similarity = 3;
};

struct Phase {
  profile::ContextIndex head = profile::kRoot;  // all of its contexts were merged into this one
  double seconds = 0;
  profile::AccessCounts accesses;
};

struct Phases {
  std::vector<Phase> phases;              // by head, ascending; the first one's is the root
  std::vector<std::uint32_t> of_context;  // the phase of each context
};

// From the leaves up. A context is compared with what its parent itself accessed, without what was merged into that: so
// the order of children is of no account.
[[nodiscard]] Phases merge_contexts(const profile::ContextTree& tree, const MergeThresholds& thresholds);

}  // namespace farheap::plan
