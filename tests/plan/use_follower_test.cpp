// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/use_follower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace farheap::plan::use_follower_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kPart = UseFollower::kPartBytes;
constexpr std::uint64_t kBegin = 0x1000'0000;

// Four parts: filled once at 0 to 3, then used backwards in rounds of 8.
PlannedPhase backwards() {
  PlannedPhase phase;
  phase.once = 4;
  phase.round = 8;
  PlannedObject object{.site = 0, .number = 0, .bytes = 4 * kPart, .parts = {}};
  for (std::uint32_t i = 0; i < 4; ++i) object.parts.push_back({{i, 1}, {4 + 2 * (3 - i), 1}});
  phase.objects.push_back(object);
  return phase;
}

UseFollower follow(std::uint64_t lead_bytes) {
  const LiveObject objects[] = {{0, kBegin, 4 * kPart}};
  return {backwards(), objects, lead_bytes};
}

TEST(UseFollower, HasPartsOfTheObjectsWholePages) {
  const LiveObject objects[] = {{0, kBegin + 16, 2 * kPart + 8192}};
  const UseFollower follower(backwards(), objects, kPart);
  EXPECT_THAT(follower.parts(),
              ElementsAre(PageRange{kBegin + 4096, kPart}, PageRange{kBegin + 4096 + kPart, kPart + 4096}));
}

TEST(UseFollower, TellsWhatComesNextOnce) {
  UseFollower follower = follow(2 * kPart);
  EXPECT_THAT(follower.used(0), ElementsAre(1, 2));
  EXPECT_THAT(follower.used(1), ElementsAre(3));  // 2 was told
  EXPECT_THAT(follower.used(2), IsEmpty());       // 3, and then 3 again
}

TEST(UseFollower, ARoundComesAgain) {
  UseFollower follower = follow(kPart);
  for (const std::uint32_t part : {0u, 1u, 2u, 3u}) (void)follower.used(part);
  for (int round = 0; round < 3; ++round) {
    (void)follower.used(3);
    EXPECT_THAT(follower.used(2), ElementsAre(1)) << round;
    EXPECT_THAT(follower.used(1), ElementsAre(0)) << round;
    EXPECT_THAT(follower.used(0), ElementsAre(3)) << round;
  }
}

// What stayed in memory is not seen to be used.
TEST(UseFollower, GoesOnBehindUsesThatWereNotSeen) {
  UseFollower follower = follow(kPart);
  (void)follower.used(0);
  EXPECT_THAT(follower.used(3), IsEmpty());  // it is used twice on end
  EXPECT_THAT(follower.used(1), ElementsAre(0));
}

TEST(UseFollower, WhatIsNotPlannedSoonTellsNothing) {
  UseFollower follower = follow(kPart);
  (void)follower.used(3);  // of the fill; its round begins with 3 again
  (void)follower.used(3);
  EXPECT_THAT(follower.used(3), IsEmpty());
  EXPECT_THAT(follower.used(2), ElementsAre(1)) << "it did not lose its place";
}

TEST(UseFollower, WithoutARoundTheEndIsTheEnd) {
  PlannedPhase phase = backwards();
  phase.once = 12;
  phase.round = 0;
  const LiveObject objects[] = {{0, kBegin, 4 * kPart}};
  UseFollower follower(phase, objects, 8 * kPart);
  for (const std::uint32_t part : {0u, 1u, 2u, 3u, 3u, 2u, 1u, 0u}) (void)follower.used(part);
  EXPECT_THAT(follower.used(0), IsEmpty());
}

}  // namespace
}  // namespace farheap::plan::use_follower_test
