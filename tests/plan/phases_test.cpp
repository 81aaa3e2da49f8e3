// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/phases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace farheap::plan {
namespace {

using profile::AccessCounts;
using profile::Context;
using profile::ContextIndex;
using profile::ContextTree;
using testing::ElementsAre;

constexpr profile::SiteId kA = 1, kB = 2, kC = 3;
constexpr double kLong = 10;

std::vector<ContextIndex> heads(const Phases& phases) {
  std::vector<ContextIndex> found;
  for (const Phase& phase : phases.phases) found.push_back(phase.head);
  return found;
}

// The seed's three contexts, as children of the first: the second is like it, the third is not.
TEST(Phases, MergeTheSeedsSecondContextAndNotItsThird) {
  ContextTree tree;
  const ContextIndex first = tree.add({.seconds = kLong, .accesses = AccessCounts({{kA, 10}, {kB, 5}})});
  const ContextIndex second =
      tree.add({.parent = first, .seconds = kLong, .accesses = AccessCounts({{kA, 12}, {kB, 4}})});
  const ContextIndex third =
      tree.add({.parent = first, .seconds = kLong, .accesses = AccessCounts({{kA, 3}, {kB, 29}, {kC, 1}})});
  const Phases phases = merge_contexts(tree, {});
  EXPECT_THAT(heads(phases), ElementsAre(profile::kRoot, first, third));
  EXPECT_THAT(phases.of_context, ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(phases.phases[1].seconds, 2 * kLong);
  EXPECT_EQ(phases.phases[1].accesses, AccessCounts({{kA, 22}, {kB, 9}}));
  EXPECT_EQ(phases.of_context[second], phases.of_context[first]);
}

TEST(Phases, MergeWhatIsShortWithAllThatWasMergedIntoIt) {
  ContextTree tree;
  const ContextIndex parent = tree.add({.seconds = 0.1, .accesses = AccessCounts({{kA, 1}})});
  const ContextIndex child = tree.add({.parent = parent, .seconds = 0.2, .accesses = AccessCounts({{kB, 1}})});
  EXPECT_THAT(heads(merge_contexts(tree, {.least_seconds = 0.4})), ElementsAre(profile::kRoot));
  // Together they are long enough: the child is merged, the parent stays.
  EXPECT_THAT(heads(merge_contexts(tree, {.least_seconds = 0.25})), ElementsAre(profile::kRoot, parent));
  EXPECT_THAT(heads(merge_contexts(tree, {.least_seconds = 0.05})), ElementsAre(profile::kRoot, parent, child));
}

TEST(Phases, OfAnEmptyProfileIsTheProgram) {
  const Phases phases = merge_contexts(ContextTree(), {});
  EXPECT_THAT(heads(phases), ElementsAre(profile::kRoot));
  EXPECT_THAT(phases.of_context, ElementsAre(0));
}

TEST(Phases, HaveAllSecondsAndAccessesOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    ContextTree tree;
    AccessCounts all;
    double seconds = 0;
    for (int i = 0; i < 30; ++i) {
      Context context;
      context.parent = static_cast<ContextIndex>(random() % tree.size());
      context.seconds = static_cast<double>(random() % 64) / 64;
      context.accesses = AccessCounts({{static_cast<profile::SiteId>(random() % 4), random() % 20},
                                       {static_cast<profile::SiteId>(random() % 4), random() % 20}});
      all += context.accesses;
      seconds += context.seconds;
      tree.add(context);
    }
    const Phases phases = merge_contexts(tree, {.least_seconds = static_cast<double>(random() % 3) / 2});
    AccessCounts found;
    double found_seconds = 0;
    for (const Phase& phase : phases.phases) {
      found += phase.accesses;
      found_seconds += phase.seconds;
      EXPECT_EQ(phases.phases[phases.of_context[phase.head]].head, phase.head);
    }
    EXPECT_EQ(found, all);
    EXPECT_EQ(found_seconds, seconds);  // of 64ths: exact
    for (ContextIndex next = 1; next < tree.size(); ++next) {
      const bool is_head = phases.phases[phases.of_context[next]].head == next;
      EXPECT_TRUE(is_head || phases.of_context[next] == phases.of_context[tree[next].parent]);
    }
  }
}

}  // namespace
}  // namespace farheap::plan
