// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tool/profile_forms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tool/profile_figures.hpp"

namespace farheap::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

SiteFigures site_of(const std::vector<std::string>& stack, double seconds) {
  SiteFigures site;
  site.site = stack.back();
  site.stack = stack;
  site.waits = {100, seconds, 4096};
  return site;
}

// A program with an allocator of its own, which has pools above that.
ProfileFigures of_one_allocator() {
  ProfileFigures figures;
  figures.all = {300, 0.6, 12 << 20};
  figures.sites = {site_of({"main (a.c:1)", "read_rows (a.c:10)", "get_atom (pool.c:5)", "dma (alloc.c:87)"}, 0.3),
                   site_of({"main (a.c:1)", "read_names (a.c:20)", "get_atom (pool.c:5)", "dma (alloc.c:87)"}, 0.2),
                   site_of({"main (a.c:2)", "solve (b.c:30)", "dma (alloc.c:87)"}, 0.1)};
  figures.lines = {{"sort (a.c:40)", {300, 0.6, 12 << 20}, "dma (alloc.c:87)", 1, figures.sites[1].stack}};
  return figures;
}

// Of glpsol's sites five in a row read "dma (alloc.c:87), called from dmp_get_atom (dmp.c:130)".
TEST(ProfileText, SitesOfAnAllocatorOfTheProgramsOwnLookedAlike) {
  const std::string text = profile_text(of_one_allocator());
  EXPECT_THAT(text, HasSubstr("get_atom (pool.c:5), from read_rows (a.c:10)"));
  EXPECT_THAT(text, HasSubstr("get_atom (pool.c:5), from read_names (a.c:20)"));
  EXPECT_THAT(text, HasSubstr("dma (alloc.c:87)  solve (b.c:30)\n")) << "that caller is enough";
}

TEST(ProfileText, LinesThatWaitSayWhichCallOfTheAllocatorItWas) {
  EXPECT_THAT(profile_text(of_one_allocator()),
              HasSubstr("dma (alloc.c:87), from get_atom (pool.c:5), from read_names (a.c:20)"));
  ProfileFigures alone = of_one_allocator();
  alone.sites = {alone.sites[1]};
  EXPECT_THAT(profile_text(alone), AllOf(HasSubstr("sort (a.c:40)  dma (alloc.c:87)\n"), Not(HasSubstr("..."))));
}

TEST(ProfileText, AStackThatIsTheEndOfAnotherIsNamedByItsOutermostFrame) {
  ProfileFigures figures = of_one_allocator();
  figures.sites = {site_of({"main (a.c:1)", "more (a.c:7)", "run (a.c:9)", "dma (alloc.c:87)"}, 0.3),
                   site_of({"run (a.c:9)", "dma (alloc.c:87)"}, 0.2), site_of({"dma (alloc.c:87)"}, 0.1)};
  EXPECT_THAT(profile_text(figures), HasSubstr("run (a.c:9), from more (a.c:7)"));
}

// "Threads waited 0.22 s": for the recording, which looks what is used. Nothing had left memory.
TEST(ProfileText, WhatARecordingItselfTookLookedLikeWaiting) {
  ProfileFigures figures = of_one_allocator();
  EXPECT_THAT(waits_summary(figures), Not(HasSubstr("None was read")));
  figures.all.bytes_read = 0;
  EXPECT_THAT(waits_summary(figures), HasSubstr("None was read: all were still in memory"));
}

}  // namespace
}  // namespace farheap::tool
