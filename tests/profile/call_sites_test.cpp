// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/call_sites.hpp"

#include <alloca.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace farheap::profile {
namespace {

CallSites* g_sites;

// What is asked for its site, as malloc() would be.
__attribute__((noinline)) SiteId ask() {
  const SiteId site = g_sites->site_of(__builtin_return_address(0), __builtin_frame_address(0));
  asm volatile("" ::: "memory");  // no tail call
  return site;
}

// A random program: each step calls one of three functions, with frames of different sizes.
using Path = std::vector<int>;

SiteId walk(const Path& path, std::size_t at);

template <int kKind>
__attribute__((noinline)) SiteId step(const Path& path, std::size_t at) {
  auto* const room = static_cast<volatile char*>(alloca(16 + 64 * kKind));
  room[0] = 1;
  const SiteId site = walk(path, at);
  room[1] = 2;
  return site;
}

__attribute__((noinline)) SiteId walk(const Path& path, std::size_t at) {
  SiteId site = 0;
  if (at == path.size()) {
    site = ask();
  } else if (path[at] == 0) {
    site = step<0>(path, at + 1);
  } else if (path[at] == 1) {
    site = step<1>(path, at + 1);
  } else {
    site = step<2>(path, at + 1);
  }
  asm volatile("" ::: "memory");
  return site;
}

std::vector<Path> random_paths(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<Path> paths(static_cast<std::size_t>(count));
  for (Path& path : paths) {
    path.resize(random() % 8);
    for (int& kind : path) kind = static_cast<int>(random() % 3);
  }
  return paths;
}

class CallSitesTest : public testing::Test {
 protected:
  void make(CallSites::Limits limits) {
    auto made = CallSites::make(limits);
    ASSERT_TRUE(made) << made.error().message();
    sites_.emplace(std::move(*made));
    g_sites = &*sites_;
  }
  std::optional<CallSites> sites_;
};

TEST_F(CallSitesTest, OneStackIsOneSiteAndAnotherOneAnother) {
  make({});
  std::map<Path, SiteId> seen;
  std::set<SiteId> all;
  for (int round = 0; round < 3; ++round) {
    for (const Path& path : random_paths(1, 500)) {
      const SiteId site = walk(path, 0);
      ASSERT_NE(site, CallSites::kNoSite);
      const auto [at, is_new] = seen.emplace(path, site);
      EXPECT_EQ(at->second, site);
      EXPECT_EQ(all.insert(site).second, is_new) << "two stacks are one site";
    }
  }
  EXPECT_EQ(sites_->count(), seen.size());
}

// A step to the right in one frame and one in another make the same depth by two ways: return address and depth alone
// take them for one.
TEST_F(CallSitesTest, OfTheSameDepthAreToldApartByTheirOtherFrames) {
  make({});
  SiteId sites[2];
  const Path paths[] = {{0, 1, 2}, {2, 1, 0}};
  for (int i = 0; i < 2; ++i) sites[i] = walk(paths[i], 0);  // one place of the call
  const auto [one, other] = sites;
  ASSERT_NE(one, other);
  const auto stack_one = sites_->stack(one), stack_other = sites_->stack(other);
  ASSERT_EQ(stack_one.size(), stack_other.size());
  EXPECT_EQ(stack_one[0].address, stack_other[0].address);
}

TEST_F(CallSitesTest, StackHasTheReturnAddressesFromTheInnermostOn) {
  make({.sites = 100, .frames = 3});
  const SiteId site = walk({0, 0}, 0);
  const auto stack = sites_->stack(site);
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_EQ(stack[0].place, sizeof(void*));
  EXPECT_LT(stack[0].place, stack[1].place);
  EXPECT_LT(stack[1].place, stack[2].place);
  EXPECT_NE(stack[0].address, stack[1].address);
  EXPECT_EQ(stack[2].address, sites_->stack(walk({0}, 0))[2].address) << "both are walk() below step<0>()";
}

TEST_F(CallSitesTest, OnlyTheFramesThatAreKeptCount) {
  make({.sites = 10'000, .frames = 1});
  // Of one depth, and of one return address.
  EXPECT_EQ(walk({0, 1, 2}, 0), walk({2, 1, 0}, 0));
}

// A recursion with two calls has any number of stacks of one return address and depth, and each new one was compared
// with all of them.
TEST_F(CallSitesTest, OfARecursionAreTheCallerAloneFromAManyOn) {
  make({});
  std::set<SiteId> seen;
  for (int number = 0; number < 1024; ++number) {
    Path path(10);
    for (int bit = 0; bit < 10; ++bit) path[static_cast<std::size_t>(bit)] = number >> bit & 1;
    // As deep as all others.
    Path level = path;
    for (const int kind : path) level.push_back(1 - kind);
    seen.insert(walk(level, 0));
  }
  EXPECT_EQ(seen.size(), 65u);
  EXPECT_FALSE(seen.contains(CallSites::kNoSite));
  EXPECT_EQ(sites_->stack(*seen.rbegin()).size(), 1u);
}

TEST_F(CallSitesTest, ThatFindNoRoomAreNone) {
  make({.sites = 3, .frames = 8});
  std::set<SiteId> seen;
  for (const Path& path : random_paths(2, 50)) seen.insert(walk(path, 0));
  EXPECT_THAT(seen, testing::ElementsAre(CallSites::kNoSite, 1, 2, 3));
  EXPECT_EQ(sites_->count(), 3u);
}

TEST_F(CallSitesTest, OfManyThreadsAreTheSame) {
  make({});
  const auto paths = random_paths(3, 2000);
  // All threads begin at one depth, so what they find first must be one site for all.
  std::vector<std::map<Path, SiteId>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found) {
    threads.emplace_back([&paths, &mine] {
      for (int round = 0; round < 2; ++round) {
        for (const Path& path : paths) {
          const SiteId site = walk(path, 0);
          EXPECT_EQ(mine.emplace(path, site).first->second, site);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& mine : found) EXPECT_EQ(mine, found[0]);
}

TEST_F(CallSitesTest, OnAStackOfItsOwnAreTheCallerAlone) {
  make({});
  static SiteId inside[2];
  static ucontext_t back, coroutine;
  std::vector<char> stack(64 << 10);
  for (int i = 0; i < 2; ++i) {
    static int number;
    number = i;
    ASSERT_EQ(getcontext(&coroutine), 0);
    coroutine.uc_stack = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
    coroutine.uc_link = &back;
    makecontext(&coroutine, [] { inside[number] = number == 0 ? walk({0, 1}, 0) : walk({1, 1, 2}, 0); }, 0);
    ASSERT_EQ(swapcontext(&back, &coroutine), 0);
  }
  EXPECT_NE(inside[0], CallSites::kNoSite);
  EXPECT_EQ(inside[0], inside[1]);
  EXPECT_EQ(sites_->stack(inside[0]).size(), 1u);
  EXPECT_EQ(sites_->stack(inside[0])[0].address, sites_->stack(walk({}, 0))[0].address);
}

TEST_F(CallSitesTest, GoOnInAForkedChild) {
  make({});
  SiteId sites[3];
  pid_t child = 0;
  // One place of the call for all.
  for (int i = 0; i < 3; ++i) {
    if (i == 1) child = fork();
    sites[i] = walk(i == 2 ? Path{2, 2} : Path{1, 2}, 0);
  }
  if (child == 0) _exit(sites[1] == sites[0] && sites[2] != sites[0] && sites[2] != CallSites::kNoSite ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace farheap::profile
