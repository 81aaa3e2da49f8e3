// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/kernel_hints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/hint_file.hpp"

namespace farheap::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kBegin = 0x1000'0000;

HintPlan plan_of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> bytes_and_accesses) {
  HintPlan hints;
  hints.plan.program = "program";
  PlannedPhase& phase = hints.plan.phases.emplace_back();
  phase.once = 8;
  hints.plan.sites = {{{.file = 0, .offset = 1}}};
  for (const auto& [bytes, accesses] : bytes_and_accesses) {
    const auto number = static_cast<std::uint32_t>(phase.objects.size());
    phase.objects.push_back({.site = 0, .number = number, .bytes = bytes, .parts = {{{1, 1}}}});
    hints.accesses.push_back(accesses);
  }
  return hints;
}

// By hand: a page of the second has 50 accesses, of the first 10, of the third none. Of ten pages the second takes
// four; the first (eight) does not fit into six, its first half does, and of its other half the first half does.
TEST(KernelHints, LocksTheHottestFirstAndHalvesWhatDoesNotFit) {
  const HintPlan hints = plan_of({{8 * kPage, 80}, {4 * kPage, 200}, {4 * kPage, 0}});
  const LiveObject objects[] = {
      {0, kBegin, 8 * kPage}, {1, kBegin + 16 * kPage, 4 * kPage}, {2, kBegin + 32 * kPage, 4 * kPage}};
  const auto chosen = choose_locked(hints, objects, 10 * kPage);
  ASSERT_EQ(chosen.size(), 3u);
  EXPECT_THAT(chosen[0], ElementsAre(PageRange{kBegin, 6 * kPage}));
  EXPECT_THAT(chosen[1], ElementsAre(PageRange{kBegin + 16 * kPage, 4 * kPage}));
  EXPECT_THAT(chosen[2], IsEmpty());
}

// Four times as large as in the profile: as many accesses a page, so it stays behind the other one.
TEST(KernelHints, ALargerObjectIsNotHotter) {
  const HintPlan hints = plan_of({{8 * kPage, 80}, {4 * kPage, 60}});
  const LiveObject objects[] = {{0, kBegin, 32 * kPage}, {1, kBegin + 64 * kPage, 4 * kPage}};
  const auto chosen = choose_locked(hints, objects, 4 * kPage);
  EXPECT_THAT(chosen[0], IsEmpty());
  EXPECT_THAT(chosen[1], ElementsAre(PageRange{kBegin + 64 * kPage, 4 * kPage}));
}

// What malloc() answers begins 16 bytes behind a page's begin; that page and the last one are others', too.
TEST(KernelHints, PagesThatAreSharedAreLeftOut) {
  const HintPlan hints = plan_of({{4 * kPage, 40}});
  const LiveObject objects[] = {{0, kBegin + 16, 4 * kPage}};
  EXPECT_THAT(choose_locked(hints, objects, 100 * kPage)[0], ElementsAre(PageRange{kBegin + kPage, 3 * kPage}));
  EXPECT_EQ(pages_of({0, kBegin + 16, kPage}).bytes, 0u);
  EXPECT_EQ(pages_of({0, kBegin + 16, 0}).bytes, 0u);
}

TEST(KernelHints, WithoutRoomNothingIsLocked) {
  const HintPlan hints = plan_of({{4 * kPage, 40}});
  const LiveObject objects[] = {{0, kBegin, 4 * kPage}};
  EXPECT_THAT(choose_locked(hints, objects, 0)[0], IsEmpty());
}

// A plan has no accesses: two parts of two pages with three and one uses are eight page uses.
TEST(KernelHints, OfAPlanTheUsesOfPartsCount) {
  Plan plan = plan_of({{4 * kPage, 0}}).plan;
  plan.phases[0].objects[0].parts = {{{1, 1}, {2, 1}, {3, 1}}, {{4, 1}}};
  EXPECT_THAT(hints_of(plan).accesses, ElementsAre(8));
}

// What only goes across an object was used by nobody, and never locked.
TEST(KernelHints, OfAPlanPassesAcrossObjectsCount) {
  Plan plan = plan_of({{4 * kPage, 0}}).plan;
  plan.phases[0].objects[0].parts = {{{1, 1}}, {}};
  plan.phases[0].objects[0].strides = {{2, {5, 6}}, {2, {9, 8}}};
  EXPECT_THAT(hints_of(plan).accesses, ElementsAre(2 + 8));
}

TEST(KernelHints, OfAPlanOfSeveralPhasesTheUsesOfAllCount) {
  Plan plan = plan_of({{4 * kPage, 0}, {2 * kPage, 0}}).plan;
  PlannedPhase other = plan.phases[0];
  std::swap(other.objects[0], other.objects[1]);
  other.round = 9;
  other.objects[1].parts = {{{16, 1}, {17, 1}}};
  plan.phases.push_back(other);
  const HintPlan hints = hints_of(plan);
  ASSERT_EQ(hints.plan.phases.size(), 1u);
  ASSERT_EQ(hints.phase().objects.size(), 2u);
  EXPECT_EQ(hints.phase().objects[0].number, 0u);
  EXPECT_THAT(hints.accesses, ElementsAre(4 + 8, 2 + 2));
  EXPECT_TRUE(read_plan(encode(hints.plan), "a plan"));
}

TEST(KernelHints, WhatIsTakenAwayMayLieAnywhere) {
  const PageRange all[] = {{10, 10}, {30, 10}};
  EXPECT_THAT(without(all, {}), ElementsAre(all[0], all[1]));
  EXPECT_THAT(without(all, std::vector<PageRange>{{0, 12}, {14, 2}, {18, 14}, {36, 99}}),
              ElementsAre(PageRange{12, 2}, PageRange{16, 2}, PageRange{32, 4}));
  EXPECT_THAT(without(all, std::vector<PageRange>{{0, 99}}), IsEmpty());
  EXPECT_THAT(without(all, std::vector<PageRange>{{20, 10}}), ElementsAre(all[0], all[1]));
}

TEST(HintFile, HandsOverWhatItWasMadeOf) {
  const HintPlan hints = plan_of({{8 * kPage, 80}, {4 * kPage, 200}});
  const auto made = HintFile::make(hints, HintKind::kAdvise, 12345);
  ASSERT_TRUE(made) << made.error().message();
  const auto opened = HintFile::open(made->path());
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->page().kind, HintKind::kAdvise);
  EXPECT_EQ(opened->page().room_bytes, 12345u);
  const auto read = opened->hints();
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, hints);
  opened->page().advised_bytes.fetch_add(7);
  EXPECT_EQ(made->page().advised_bytes.load(), 7u);
}

TEST(HintFile, WhatIsNoneIsRefused) {
  EXPECT_FALSE(HintFile::open("/no/such/file"));
  EXPECT_FALSE(HintFile::open("/proc/self/exe"));
  const auto made = HintFile::make(plan_of({{8 * kPage, 80}}), HintKind::kLock, 1);
  ASSERT_TRUE(made);
  made->page().objects = 99;
  EXPECT_FALSE(made->hints());
  made->page().magic[0] = 'X';
  EXPECT_FALSE(HintFile::open(made->path()));
}

}  // namespace
}  // namespace farheap::plan
