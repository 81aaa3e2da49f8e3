// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/site_numbers.hpp"

#include <gtest/gtest.h>

namespace farheap::plan {
namespace {

TEST(SiteNumbers, StacksWithOneNameHaveOneNumber) {
  // Two ways to the outermost of five frames, and a shorter one.
  const std::vector<profile::StackFrame> frames = {{},          {0, {1, 1}}, {1, {1, 2}}, {2, {1, 3}},
                                                   {3, {1, 4}}, {4, {1, 5}}, {4, {1, 6}}};
  SiteNumbers numbers(frames);
  EXPECT_EQ(numbers.number_of(5), 0u);
  EXPECT_EQ(numbers.number_of(6), 0u);
  EXPECT_EQ(numbers.number_of(2), 1u);
  EXPECT_EQ(numbers.number_of(5), 0u);
  EXPECT_EQ(numbers.number_of(0), 2u);
  EXPECT_EQ(numbers.names(), (std::vector<SiteName>{{{1, 1}, {1, 2}, {1, 3}, {1, 4}}, {{1, 1}, {1, 2}}, {}}));
}

// Each new one was compared with all before it.
TEST(SiteNumbers, AMillionSitesAreNumberedAsTheyCome) {
  constexpr std::uint32_t kMany = 1'000'000;
  std::vector<profile::StackFrame> frames = {{}};
  for (std::uint32_t i = 0; i < kMany; ++i) frames.push_back({0, {1 + i % 3, i}});
  SiteNumbers numbers(frames);
  for (std::uint32_t i = 0; i < kMany; ++i) ASSERT_EQ(numbers.number_of(i + 1), i);
  for (std::uint32_t i = kMany; i-- > 0;) ASSERT_EQ(numbers.number_of(i + 1), i);
  EXPECT_EQ(numbers.names().size(), kMany);
}

}  // namespace
}  // namespace farheap::plan
