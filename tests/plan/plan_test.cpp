// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/plan.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <map>
#include <random>
#include <set>

#include "base/fields.hpp"

namespace farheap::plan {
namespace {

Plan made_up() {
  Plan plan;
  plan.program = "a program";
  plan.files = {{}, {"/bin/a program", "00ff"}, {"/lib/library.so", ""}};
  plan.sites = {{{1, 0x1234}, {2, ~std::uint64_t{0}}}, {}, {{0, 7}}};
  PlannedPhase& phase = plan.phases.emplace_back();
  phase.objects = {
      {.site = 0, .number = 0, .bytes = 1 << 20, .foreseen = 100, .parts = {{{0, 0}, {5, 64}}, {}, {{150, 1}}}},
      {.site = 2,
       .number = 3,
       .bytes = ~std::uint64_t{0},
       .foreseen = 0,
       .parts = {},
       .strides = {{2, {0, 150}}, {9, {7}}}}};
  phase.once = 50, phase.round = 100, phase.window = 8, phase.window_pages = 512, phase.unsure = 9, phase.foreseen = 87;
  plan.phases.push_back(
      {.objects = {{.site = 1, .number = 5, .bytes = 3, .foreseen = 4, .parts = {{{7, 8}}}}}, .once = 7});
  plan.regions = {{{2, 0}, ~std::uint64_t{0}, kRegionShares, 0, {kRegionShares, 0}},
                  {{}, 0, 17, kRegionShares, {0, 5}}};
  plan.region_saving = {kRegionShares, 3};
  return plan;
}

std::string with_body(const std::string& body, std::uint64_t format = kPlanFormat) {
  base::FieldWriter out;
  out.number(format);
  out.number(XXH3_64bits(body.data(), body.size()));
  out.text(body);
  return std::string(kPlanMagic) + out.bytes();
}

void expect_refused(const std::string& bytes, const std::string& what, ErrorCode code = ErrorCode::kCorrupt) {
  const auto plan = read_plan(bytes, "a plan");
  ASSERT_FALSE(plan) << what;
  EXPECT_EQ(plan.error().code, code) << what;
  EXPECT_EQ(plan.error().subject, "a plan");
  EXPECT_FALSE(plan.error().remedy.empty());
}

// ---- its format

TEST(PlanFile, ComesBackAsItWasWritten) {
  const auto plan = read_plan(encode(made_up()), "a plan");
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(*plan, made_up());
  const auto empty = read_plan(encode(Plan{}), "a plan");
  ASSERT_TRUE(empty) << empty.error().message();
  EXPECT_EQ(*empty, Plan{});
}

// Byte by byte, as docs/formats.md says.
TEST(PlanFile, IsAsItsFormatSays) {
  Plan plan;
  plan.program = "p";
  plan.sites = {{{0, 9}}};
  PlannedPhase& phase = plan.phases.emplace_back();
  phase.objects = {
      {.site = 0, .number = 1, .bytes = 2, .foreseen = 3, .parts = {{{4, 0x01020304}}}, .strides = {{5, {6, 7}}}}};
  phase.once = 10, phase.round = 11, phase.window = 12, phase.window_pages = 13, phase.unsure = 14, phase.foreseen = 15;
  plan.regions = {{{0}, 16, 17, 18, {21, 22}}};
  plan.region_saving = {19, 20};
  base::FieldWriter body;
  body.text("p");
  body.number(1), body.text(""), body.text("");
  body.number(1), body.number(1), body.number(0), body.number(9);
  body.number(1);
  for (const std::uint64_t one : {10, 11, 12, 13, 14, 15}) body.number(one);
  body.number(1);
  for (const std::uint64_t one : {0, 1, 2, 3}) body.number(one);
  body.number(1);
  body.text(std::string("\x04\0\0\0\x04\x03\x02\x01", 8));
  for (const std::uint64_t one : {1, 5, 2, 6, 7}) body.number(one);
  for (const std::uint64_t one : {1, 1, 0, 16, 17, 18, 2, 21, 22, 19, 20}) body.number(one);
  EXPECT_EQ(encode(plan), with_body(body.bytes()));
  EXPECT_EQ(encode(plan).substr(0, 8), "FHPLAN\r\n");
}

TEST(PlanFile, CutAnywhereIsRefused) {
  const std::string whole = encode(made_up());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    expect_refused(whole.substr(0, length), "cut at " + std::to_string(length));
  }
  expect_refused(whole + '\0', "longer");
}

TEST(PlanFile, NoFlippedBitIsTaken) {
  const std::string whole = encode(made_up());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const auto plan = read_plan(changed, "a plan");
    ASSERT_FALSE(plan) << "bit " << bit;
    const bool in_format = bit / 64 == 1;
    EXPECT_EQ(plan.error().code, in_format ? ErrorCode::kUnavailable : ErrorCode::kCorrupt) << "bit " << bit;
  }
}

TEST(PlanFile, OfANewerFormatIsToldAsSuch) {
  const std::string whole = encode(made_up());
  std::string newer = whole;
  newer[8] = kPlanFormat + 1;
  expect_refused(newer, "newer", ErrorCode::kUnavailable);
  EXPECT_NE(read_plan(newer, "x").error().why.find("newer format 6"), std::string::npos);
  expect_refused(newer.substr(0, 16), "newer, and of another form", ErrorCode::kUnavailable);
}

TEST(PlanFile, OfAnOlderFormatIsToldAsSuch) {
  const std::string older = with_body("whatever it was", kPlanFormat - 1);
  expect_refused(older, "older", ErrorCode::kUnavailable);
  EXPECT_NE(read_plan(older, "x").error().why.find("older format 4"), std::string::npos);
}

TEST(PlanFile, WhatIsNoneIsToldAsSuch) {
  expect_refused("", "empty");
  expect_refused("FHPROFIL", "a profile");
  expect_refused(std::string(100, '\0'), "zeros");
  expect_refused("FHPLAN\n", "changed by a text mode");
}

// With a checksum that fits.
TEST(PlanFile, NumbersThatNameNothingAreRefused) {
  const auto refused = [](const char* what, auto change) {
    Plan plan = made_up();
    change(plan);
    expect_refused(encode(plan), what);
  };
  refused("no files",
          [](Plan& plan) { plan.files.clear(), plan.sites.clear(), plan.phases.clear(), plan.regions.clear(); });
  refused("no such site of a region", [](Plan& plan) { plan.regions[1].sites = {3}; });
  refused("a site of two regions", [](Plan& plan) { plan.regions[1].sites = {0}; });
  refused("a site twice", [](Plan& plan) { plan.regions[0].sites = {0, 0}; });
  refused("more than all touches", [](Plan& plan) { plan.regions[0].of_touches = kRegionShares + 1; });
  refused("more than all bytes", [](Plan& plan) { plan.regions[0].of_bytes = kRegionShares + 1; });
  refused("more than all of a phase", [](Plan& plan) { plan.regions[0].of_phases.at(1) = kRegionShares + 1; });
  refused("too many phases", [](Plan& plan) {
    for (PlannedRegion& region : plan.regions) region.of_phases.resize(kMostRegionPhases + 1);
  });
  refused("fewer phases than another", [](Plan& plan) { plan.regions[0].of_phases.pop_back(); });
  refused("saves more than all", [](Plan& plan) { plan.region_saving.at_50 = kRegionShares + 1; });
  refused("too many regions", [](Plan& plan) { plan.regions.resize(kMostRegions + 1); });
  refused("no such file", [](Plan& plan) { plan.sites[0][1].file = 3; });
  refused("no such site", [](Plan& plan) { plan.phases[0].objects[1].site = 3; });
  refused("not in their order", [](Plan& plan) { plan.phases[0].objects[0].parts[0] = {{5, 0}, {4, 0}}; });
  refused("behind the end", [](Plan& plan) { plan.phases[0].objects[0].parts[1] = {{151, 0}}; });
  refused("one piece", [](Plan& plan) { plan.phases[0].objects[1].strides[0].repeats = 1; });
  refused("a piece without parts", [](Plan& plan) { plan.phases[0].objects[1].strides[1].times.clear(); });
  refused("a pass behind the end", [](Plan& plan) { plan.phases[0].objects[1].strides[0].times[1] = 151; });
  refused("no such end", [](Plan& plan) { plan.phases[1].once = ~0u, plan.phases[1].round = 1; });
}

TEST(PlanFile, CountsThatAreTooLargeAreRefused) {
  const std::string whole = encode(made_up());
  const std::string body = whole.substr(kPlanMagic.size() + 24);
  ASSERT_EQ(with_body(body), whole);
  // Each number of the body in turn, whatever it means, as one that is far too large.
  for (std::size_t at = 0; at + 8 <= body.size(); ++at) {
    for (const std::uint64_t wrong : {~std::uint64_t{0}, std::uint64_t{1} << 61, std::uint64_t{1} << 32}) {
      std::string changed = body;
      for (unsigned i = 0; i < 8; ++i) changed[at + i] = static_cast<char>(wrong >> (8 * i) & 0xff);
      if (const auto plan = read_plan(with_body(changed), "a plan")) {
        const auto again = read_plan(encode(*plan), "again");
        ASSERT_TRUE(again);
        EXPECT_EQ(*again, *plan);
      }
    }
  }
}

TEST(PlanFile, APartOfAUseIsRefused) {
  base::FieldWriter body;
  body.text("p");
  body.number(1), body.text(""), body.text("");
  body.number(1), body.number(0);
  body.number(1);
  for (int i = 0; i < 6; ++i) body.number(10);
  body.number(1);
  for (int i = 0; i < 4; ++i) body.number(0);
  body.number(1);
  base::FieldWriter whole = body, half = body;
  whole.text(std::string(8, '\1'));
  half.text(std::string(7, '\1'));
  for (base::FieldWriter* const one : {&whole, &half}) {
    for (int i = 0; i < 4; ++i) one->number(0);  // no strides, no regions
  }
  EXPECT_FALSE(read_plan(with_body(half.bytes()), "half"));
  EXPECT_FALSE(read_plan(with_body(whole.bytes()), "late"));  // at 0x01010101, of 20
  body.text(std::string(8, '\0'));
  for (int i = 0; i < 4; ++i) body.number(0);
  EXPECT_TRUE(read_plan(with_body(body.bytes()), "whole"));
}

// ---- ObjectNumbers

TEST(ObjectNumbers, TheSmallestThatIsFree) {
  ObjectNumbers numbers;
  EXPECT_EQ(numbers.born(0), 0u);
  EXPECT_EQ(numbers.born(0), 1u);
  EXPECT_EQ(numbers.born(5), 0u) << "each site counts for itself";
  EXPECT_EQ(numbers.born(0), 2u);
  numbers.died(0, 2);
  numbers.died(0, 0);
  EXPECT_EQ(numbers.born(0), 0u);
  EXPECT_EQ(numbers.born(0), 2u);
  EXPECT_EQ(numbers.born(0), 3u);
}

TEST(ObjectNumbers, WhatIsFreedAndAllocatedAnewHasItsNumberAgain) {
  ObjectNumbers numbers;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(numbers.born(1), 0u);
    EXPECT_EQ(numbers.born(1), 1u);
    numbers.died(1, i % 2 == 0 ? 0 : 1);
    EXPECT_EQ(numbers.born(1), i % 2 == 0 ? 0u : 1u);
    numbers.died(1, 0);
    numbers.died(1, 1);
  }
}

TEST(ObjectNumbers, AreThoseOfALookThroughAllThatLive) {
  std::mt19937 random(1);
  ObjectNumbers numbers;
  std::map<std::uint32_t, std::set<std::uint32_t>> alive;
  for (int i = 0; i < 5000; ++i) {
    const std::uint32_t site = random() % 4;
    auto& all = alive[site];
    if (random() % 2 == 0 && !all.empty()) {
      const auto gone = std::next(all.begin(), random() % all.size());
      numbers.died(site, *gone);
      all.erase(gone);
    } else {
      std::uint32_t least = 0;
      while (all.contains(least)) ++least;
      ASSERT_EQ(numbers.born(site), least);
      all.insert(least);
    }
  }
}

}  // namespace
}  // namespace farheap::plan
