// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/pressure.hpp"

#include <gtest/gtest.h>

namespace farheap::pager {
namespace {

using std::chrono::milliseconds;

class PressureTest : public ::testing::Test {
 protected:
  // So much later it had so many faults more, waited and ran so long.
  void after(milliseconds passed, std::uint64_t faults, milliseconds waited, milliseconds ran) {
    now_ += passed;
    counts_.faults += faults;
    counts_.waited += waited;
    counts_.ran += ran;
    pressure_.look(now_, counts_);
  }
  Pressure pressure_;
  Pressure::Counts counts_;
  base::Clock::time_point now_ = base::Clock::now() + milliseconds(1);
};

TEST_F(PressureTest, WhoAsksForNoPageForAWhileRestsUntilItDoes) {
  after(Pressure::kLookEvery, 1, milliseconds(0), milliseconds(0));
  EXPECT_FALSE(pressure_.rests(now_));
  after(Pressure::kRest / 2, 0, milliseconds(0), milliseconds(0));
  EXPECT_FALSE(pressure_.rests(now_));
  after(Pressure::kRest / 2, 0, milliseconds(0), milliseconds(0));
  EXPECT_TRUE(pressure_.rests(now_));
  after(Pressure::kLookEvery, 1, milliseconds(0), milliseconds(0));
  EXPECT_FALSE(pressure_.rests(now_));
}

TEST_F(PressureTest, WhoWaitsForPagesMostOfTheTimeThrashes) {
  after(Pressure::kWindow, 100, Pressure::kWindow / 4, milliseconds(0));
  EXPECT_FALSE(pressure_.thrashes());
  after(Pressure::kWindow, 100, Pressure::kWindow * 3 / 4, milliseconds(0));
  EXPECT_TRUE(pressure_.thrashes());
  after(Pressure::kWindow, 0, milliseconds(0), Pressure::kWindow);
  EXPECT_FALSE(pressure_.thrashes());
}

TEST_F(PressureTest, WhoHardlyWaitsForWhatItAsksForIsCalm) {
  after(Pressure::kWindow, 100, Pressure::kWindow / 50, milliseconds(0));
  EXPECT_FALSE(pressure_.is_calm());
  after(Pressure::kWindow, 100, Pressure::kWindow / 200, milliseconds(0));
  EXPECT_TRUE(pressure_.is_calm());
  EXPECT_FALSE(pressure_.rests(now_));
  after(Pressure::kWindow, 100, Pressure::kWindow / 50, milliseconds(0));
  EXPECT_FALSE(pressure_.is_calm());
}

TEST_F(PressureTest, ABurstThatIsShorterThanTheWindowIsNoThrashing) {
  after(Pressure::kWindow / 3, 100, Pressure::kWindow / 3, milliseconds(0));
  EXPECT_FALSE(pressure_.thrashes());
  after(Pressure::kWindow * 2 / 3, 0, milliseconds(0), milliseconds(0));
  EXPECT_FALSE(pressure_.thrashes());
}

TEST_F(PressureTest, WhoRestsAndRunsIsNotIdle) {
  after(Pressure::kWindow, 0, milliseconds(0), Pressure::kWindow);
  EXPECT_TRUE(pressure_.rests(now_));
  EXPECT_FALSE(pressure_.idles());
  after(Pressure::kWindow, 0, milliseconds(0), Pressure::kWindow / 100);
  EXPECT_TRUE(pressure_.idles());
}

TEST_F(PressureTest, FaultsAreAddedUpNoMoreOftenThanIsNeeded) {
  after(Pressure::kLookEvery, 1, milliseconds(0), milliseconds(0));
  EXPECT_FALSE(pressure_.is_due(now_));
  EXPECT_TRUE(pressure_.is_due(now_ + Pressure::kLookEvery));
}

}  // namespace
}  // namespace farheap::pager
