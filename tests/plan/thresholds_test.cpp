// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/thresholds.hpp"

#include <gtest/gtest.h>

namespace farheap::plan::thresholds_test {
namespace {

using profile::AccessCounts;
using profile::ContextTree;

constexpr std::uint64_t kPage = 4096;
constexpr profile::SiteId kA = 0, kB = 1;
const std::uint64_t kSiteBytes[] = {10 * kPage, 10 * kPage};

// Two loops that use a site each. With room for one of them, two phases have no access away and one phase has half.
ContextTree two_loops(std::uint64_t entries) {
  ContextTree tree;
  tree.add({.entries = entries, .seconds = 1, .accesses = AccessCounts({{kA, 1000}})});
  tree.add({.entries = entries, .seconds = 1, .accesses = AccessCounts({{kB, 1000}})});
  return tree;
}

TEST(Thresholds, CostCountsHintsAndAccessesAway) {
  const ContextTree tree = two_loops(3);
  const CostModel model = {.seconds_per_hint = 0.5, .seconds_per_access_away = 0.25, .room_bytes = 10 * kPage};
  // Each loop is entered three times, and keeps one part; the program around them keeps none. Nothing is away.
  EXPECT_DOUBLE_EQ(cost_of(tree, merge_contexts(tree, {.least_seconds = 0}), kSiteBytes, model), 6 * 0.5);
  // One phase: one hint, and one of the sites is away.
  EXPECT_DOUBLE_EQ(cost_of(tree, merge_contexts(tree, {.least_seconds = 2}), kSiteBytes, model), 0.5 + 1000 * 0.25);
}

// Back from a loop that keeps nothing, what its parent keeps is said again.
TEST(Thresholds, CostOfGoingBackIsThatOfThePhaseAround) {
  ContextTree tree({.entries = 1, .accesses = AccessCounts({{kA, 10}, {kB, 10}})});
  tree.add({.entries = 5, .seconds = 1});
  const CostModel model = {.seconds_per_hint = 1, .seconds_per_access_away = 0, .room_bytes = 100 * kPage};
  EXPECT_DOUBLE_EQ(cost_of(tree, merge_contexts(tree, {.least_seconds = 0}), kSiteBytes, model), 2 + 5 * 2);
}

TEST(Thresholds, KeepPhasesApartWhereHintsAreCheapAndMergeThemWhereNot) {
  const CostModel cheap = {.seconds_per_hint = 0.001, .seconds_per_access_away = 0.1, .room_bytes = 10 * kPage};
  const ContextTree few = two_loops(3);
  EXPECT_EQ(merge_contexts(few, cheapest_thresholds(few, kSiteBytes, cheap)).phases.size(), 3u);
  const ContextTree many = two_loops(10'000'000);
  EXPECT_EQ(merge_contexts(many, cheapest_thresholds(many, kSiteBytes, cheap)).phases.size(), 1u);
}

TEST(Thresholds, MergeAllWhereNothingCosts) {
  const ContextTree tree = two_loops(3);
  const CostModel roomy = {.seconds_per_hint = 0, .seconds_per_access_away = 1, .room_bytes = 100 * kPage};
  EXPECT_EQ(merge_contexts(tree, cheapest_thresholds(tree, kSiteBytes, roomy)).phases.size(), 1u);
}

}  // namespace
}  // namespace farheap::plan::thresholds_test
