// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that are made up repeat one thing after another, and are planned.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/planner.hpp"
#include "seen_program.hpp"

namespace farheap::plan {
namespace {

// The sites of what its round uses, not only what is done before.
std::set<std::uint64_t> offsets_of(const Plan& plan, const PlannedPhase& phase) {
  std::set<std::uint64_t> offsets;
  for (const PlannedObject& object : phase.objects) {
    const auto in_round = std::ranges::count_if(
        object.parts, [&](const auto& uses) { return !uses.empty() && uses.back().time >= phase.once; });
    if (2 * static_cast<std::size_t>(in_round) > object.parts.size()) {
      offsets.insert(plan.sites[object.site][0].offset);
    }
  }
  return offsets;
}

TEST(PlannedPhases, AProgramThatRepeatsOneThingAfterAnotherHasAPhaseForEach) {
  Seen seen(4);
  const Object a{64, 8192}, b{10'000, 8192}, c{20'000, 16'384};
  std::uint64_t site = 0;
  for (const Object& object : {a, b, c}) (void)seen.born(seen.site({++site}), object);
  const UsePage use = [&](PageNumber page) { seen.use(page); };
  for (int round = 0; round < 12; ++round) forwards(a, use), forwards(b, use);
  for (int round = 0; round < 8; ++round) backwards(b, use), forwards(c, use);
  const Plan plan = planned(seen);
  ASSERT_EQ(plan.phases.size(), 2u);
  EXPECT_EQ(offsets_of(plan, plan.phases[0]), (std::set<std::uint64_t>{1, 2}));
  EXPECT_EQ(offsets_of(plan, plan.phases[1]), (std::set<std::uint64_t>{2, 3}));
  EXPECT_NEAR(plan.phases[0].round, 16'384 / 16, 60) << "one page in 16, about";
  EXPECT_NEAR(plan.phases[1].round, 24'576 / 16, 90);
  for (const PlannedPhase& phase : plan.phases) EXPECT_GE(phase.foreseen, 90u);
}

TEST(PlannedPhases, ALoopThatIsInterruptedIsOnePhase) {
  Seen seen(4);
  const Object a{64, 8192}, b{10'000, 8192}, other{20'000, 60'000};
  std::uint64_t site = 0;
  for (const Object& object : {a, b, other}) (void)seen.born(seen.site({++site}), object);
  const UsePage use = [&](PageNumber page) { seen.use(page); };
  for (int part = 0; part < 2; ++part) {
    for (int round = 0; round < 8; ++round) forwards(a, use), forwards(b, use);
    if (part == 0) forwards(other, use);
  }
  EXPECT_EQ(planned(seen).phases.size(), 1u);
}

TEST(PlannedPhases, TheSameObjectsInAnotherOrderAreAnotherPhase) {
  Seen seen(4);
  const Object a{64, 8192}, b{10'000, 8192};
  (void)seen.born(seen.site({1}), a);
  (void)seen.born(seen.site({2}), b);
  const UsePage use = [&](PageNumber page) { seen.use(page); };
  for (int round = 0; round < 8; ++round) forwards(a, use), forwards(b, use);
  for (int round = 0; round < 8; ++round) backwards(a, use), forwards(b, use);
  EXPECT_EQ(planned(seen).phases.size(), 2u);
}

TEST(PlannedPhases, WhatIsShortIsNoPhaseOfItsOwn) {
  Seen seen(4);
  const Object a{64, 16'384}, b{20'000, 1024};
  (void)seen.born(seen.site({1}), a);
  (void)seen.born(seen.site({2}), b);
  const UsePage use = [&](PageNumber page) { seen.use(page); };
  for (int round = 0; round < 12; ++round) forwards(a, use);
  for (int round = 0; round < 4; ++round) forwards(b, use);
  EXPECT_EQ(planned(seen).phases.size(), 1u);
}

// Goes across the object, of which so many pieces lie side by side.
void across(const Object& object, std::uint64_t pieces, const UsePage& use) {
  const std::uint64_t length = object.pages / pieces;
  for (std::uint64_t page = 0; page < length; ++page) {
    for (std::uint64_t piece = 0; piece < pieces; ++piece) use(object.first + piece * length + page);
  }
}

// Two loops of which both go across were one phase: only uses of parts were compared, and there were none.
TEST(PlannedPhases, AnotherWayAcrossIsAnotherPhase) {
  for (const bool is_other : {true, false}) {
    Seen seen(2);
    const Object a{64, 8192}, b{10'000, 8192}, other{20'000, 12'000};
    std::uint64_t site = 0;
    for (const Object& object : {a, b, other}) (void)seen.born(seen.site({++site}), object);
    const UsePage use = [&](PageNumber page) { seen.use(page); };
    for (int round = 0; round < 8; ++round) across(a, 64, use), across(b, 64, use);
    if (!is_other) forwards(other, use);
    for (int round = 0; round < 8; ++round) across(a, is_other ? 256 : 64, use), across(b, 64, use);
    EXPECT_EQ(planned(seen).phases.size(), is_other ? 2u : 1u);
  }
}

}  // namespace
}  // namespace farheap::plan
