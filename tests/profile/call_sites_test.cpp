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

class CallSitesTest : public ::testing::Test {
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
}

// They have the same return address and depth, which alone take them for one.
TEST_F(CallSitesTest, OfTheSameDepthAreToldApartByTheirOtherFrames) {
  make({});
  SiteId sites[2];
  const Path paths[] = {{0, 1, 2}, {2, 1, 0}};
  for (int i = 0; i < 2; ++i) sites[i] = walk(paths[i], 0);  // one place of the call
  EXPECT_NE(sites[0], sites[1]);
  const auto one = sites_->stack(sites[0]), other = sites_->stack(sites[1]);
  EXPECT_EQ(one.size(), other.size());
  EXPECT_EQ(one[0], other[0]);
}

TEST_F(CallSitesTest, StackHasTheReturnAddressesFromTheInnermostOn) {
  make({.frames = 3});
  const auto two = sites_->stack(walk({0, 0}, 0)), one = sites_->stack(walk({0}, 0));
  ASSERT_EQ(two.size(), 3u);
  ASSERT_EQ(one.size(), 3u);
  EXPECT_EQ(two[0], one[0]) << "both are walk(), which asks";
  EXPECT_EQ(two[1], one[1]) << "both are step<0>(), which calls walk()";
  EXPECT_EQ(two[2], one[2]) << "both are walk(), which calls step<0>()";
  EXPECT_NE(two[0], two[2]);
}

TEST_F(CallSitesTest, OnlyTheFramesThatAreKeptCount) {
  make({.frames = 1});
  EXPECT_EQ(walk({0, 1, 2}, 0), walk({2, 1, 0}, 0));
  EXPECT_EQ(walk({0, 1, 2}, 0), walk({}, 0));
  EXPECT_EQ(sites_->tree_frames(), 1u);
}

// A recursion with two calls has any number of stacks of one return address and depth.
TEST_F(CallSitesTest, OfARecursionAreAsManyAsItsStacks) {
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
  EXPECT_EQ(seen.size(), 1024u);
  EXPECT_FALSE(seen.contains(CallSites::kNoSite));
}

__attribute__((noinline)) SiteId with_room_for(std::size_t bytes) {
  auto* const room = static_cast<volatile char*>(alloca(bytes));
  room[0] = 1;
  const SiteId site = walk({0}, 0);
  room[bytes - 1] = 2;
  return site;
}

TEST_F(CallSitesTest, WithAFrameOfManySizesEndThere) {
  make({});
  std::set<SiteId> last;
  for (int round = 0; round < 3; ++round) {
    last.clear();
    for (std::size_t bytes = 64; bytes < 64 * 40; bytes += 64) last.insert(with_room_for(bytes));
  }
  ASSERT_EQ(last.size(), 1u);
  // ask() in walk(), in step<0>(), in walk(), in with_room_for().
  EXPECT_EQ(sites_->stack(*last.begin()).size(), 4u);
}

TEST_F(CallSitesTest, ThatFindNoRoomAreWhatIsKnown) {
  make({.tree_frames = 3, .frames = 8});
  for (int round = 0; round < 2; ++round) {
    for (const Path& path : random_paths(2, 50)) {
      const SiteId site = walk(path, 0);
      EXPECT_TRUE(site >= 1 && site <= 3) << site;
    }
  }
  EXPECT_EQ(sites_->tree_frames(), 3u);
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

// The C library lets a thread's first function return to nowhere: a recorder dropped such stacks.
TEST_F(CallSitesTest, OfAThreadEndWhereItBegins) {
  make({});
  std::vector<std::uintptr_t> stack;
  std::thread([&] { stack = sites_->stack(walk({0, 1}, 0)); }).join();
  EXPECT_GT(stack.size(), 4u);
  EXPECT_EQ(std::ranges::count(stack, 0u), 0);
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
  EXPECT_EQ(sites_->stack(inside[0])[0], sites_->stack(walk({}, 0))[0]);
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
