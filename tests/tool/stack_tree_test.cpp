// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stacks as a tree, and what is folded of it: nothing is lost, and what is left is bounded.
#include "tool/stack_tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tool/page_data.hpp"

namespace farheap::tool {
namespace {

SiteFigures site(std::vector<std::string> stack, double seconds, std::uint64_t peak) {
  SiteFigures made;
  made.stack = std::move(stack);
  made.site = made.stack.empty() ? kNoSite : made.stack.back();
  made.waits.seconds = seconds;
  made.peak_bytes = peak;
  return made;
}

// "caller;name" of every frame, in order.
std::vector<std::string> shown(const StackTree& tree) {
  std::vector<std::string> frames;
  for (const auto& frame : tree.frames) {
    frames.push_back(
        fmt::format("{};{} {}", tree.names[tree.frames[frame.caller].name], tree.names[frame.name], frame.weights[1]));
  }
  return frames;
}

TEST(StackTree, FramesHaveWhatTheyCall) {
  const StackTree tree = stack_tree({site({"main", "f", "g"}, 1, 10), site({"main", "f"}, 2, 20), site({}, 0, 1)});
  EXPECT_THAT(shown(tree), testing::ElementsAre("all;all 31", "all;main 30", "main;f 30", "f;g 10",
                                                "all;memory of no known site 1"));
  EXPECT_DOUBLE_EQ(tree.frames[0].weights[0], 3);
  EXPECT_EQ(tree.folded, 0U);
}

TEST(StackTree, WhatIsTooSmallIsFoldedIntoItsCaller) {
  const StackTree tree = stack_tree({site({"main", "big"}, 0, 1'000'000), site({"main", "small", "leaf"}, 0, 7),
                                     site({"main", "other"}, 0, 5), site({"main", "waits"}, 1, 1)});
  EXPECT_THAT(shown(tree), testing::ElementsAre("all;all 1000013", "all;main 1000013", "main;big 1000000",
                                                "main;waits 1", "main;(smaller stacks) 12"));
  EXPECT_EQ(tree.seen, 7U);
  EXPECT_EQ(tree.folded, 3U);
  EXPECT_DOUBLE_EQ(tree.folded_weights[1], 12);
}

TEST(StackTree, EqualFramesAreBoundedToo) {
  std::vector<SiteFigures> sites;
  for (int i = 0; i < 1000; ++i) sites.push_back(site({"main", fmt::format("f{}", i), "leaf"}, 0, 10));
  const StackTree tree = stack_tree(sites, 100);
  EXPECT_LE(tree.frames.size(), 200U);
  double kept = 0;
  for (std::size_t i = 1; i < tree.frames.size(); ++i) {
    EXPECT_LT(tree.frames[i].caller, i);
    if (tree.names[tree.frames[tree.frames[i].caller].name] == "main") kept += tree.frames[i].weights[1];
  }
  EXPECT_DOUBLE_EQ(kept, 10'000) << "nothing is lost";
}

TEST(LeaveLargest, KeepsWhatIsLargeInAnyWeightAndTellsTheRest) {
  ProfileFigures figures;
  for (int i = 0; i < 50; ++i) figures.sites.push_back(site({fmt::format("s{}", i)}, 0, 100));
  figures.sites.push_back(site({"waits"}, 5, 1));
  figures.sites.push_back(site({"large"}, 0, 1000));
  for (int i = 0; i < 12; ++i) figures.lines.push_back({"line", {1, 0.5, 0}, "", 0});
  const auto left = leave_largest(figures, 10);
  ASSERT_EQ(figures.sites.size(), 10U);
  EXPECT_EQ(figures.sites[8].site, "waits") << "the order stays";
  EXPECT_EQ(figures.sites[9].site, "large");
  EXPECT_EQ(left["sites"], 42);
  EXPECT_EQ(left["peak_bytes"], 4200);
  EXPECT_EQ(figures.lines.size(), 10U);
  EXPECT_EQ(left["lines"], 2);
  EXPECT_DOUBLE_EQ(left["lines_stall_seconds"].get<double>(), 1);
}

TEST(LeaveLargest, LeavesAllOfALittle) {
  ProfileFigures figures;
  figures.sites = {site({"a"}, 1, 1), site({"b"}, 0, 0)};
  EXPECT_EQ(leave_largest(figures)["sites"], 0);
  EXPECT_EQ(figures.sites.size(), 2U);
}

}  // namespace
}  // namespace farheap::tool
