// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/unit_sites.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace farheap::profile::unit_sites_test {
namespace {

constexpr std::uint64_t kPage = kSamplePageBytes;

TEST(UnitSites, AreThoseOfWhatLiesThere) {
  auto sites = UnitSites::make(100, 64).value();
  sites.note(5 * kPage + 32, 40, 7);
  EXPECT_EQ(sites.at(5 * kPage + 31), CallSites::kNoSite);
  EXPECT_EQ(sites.at(5 * kPage + 32), 7u);
  EXPECT_EQ(sites.at(5 * kPage + 71), 7u);
  EXPECT_EQ(sites.at(5 * kPage + 80), CallSites::kNoSite);
  EXPECT_EQ(sites.at(6 * kPage + 32), CallSites::kNoSite) << "another page";
  sites.note(5 * kPage + 48, 16, 9);
  EXPECT_EQ(sites.at(5 * kPage + 32), 7u);
  EXPECT_EQ(sites.at(5 * kPage + 50), 9u) << "what lies there now";
}

TEST(UnitSites, EndWithTheirPage) {
  auto sites = UnitSites::make(100, 64).value();
  sites.note(3 * kPage - 16, 4096, 7);
  EXPECT_EQ(sites.at(3 * kPage - 1), 7u);
  EXPECT_EQ(sites.at(3 * kPage), CallSites::kNoSite);
}

TEST(UnitSites, PagesBeyondTheRowsAreNotKnown) {
  constexpr std::uint64_t kPages = 1'000;
  auto sites = UnitSites::make(kPages, 64).value();
  std::uint64_t known = 0;
  for (std::uint64_t page = 0; page < kPages; ++page) {
    sites.note(page * kPage, 16, 3);
    known += sites.at(page * kPage) == 3u ? 1 : 0;
  }
  EXPECT_GE(known, 2 * kPages / 64);
  EXPECT_LT(known, kPages);
}

TEST(UnitSites, AreForgottenAndNotedAgain) {
  auto sites = UnitSites::make(100, 64).value();
  sites.note(kPage, 64, 7);
  sites.forget();
  EXPECT_EQ(sites.at(kPage), CallSites::kNoSite);
  sites.note(kPage + 16, 16, 8);
  EXPECT_EQ(sites.at(kPage), CallSites::kNoSite);
  EXPECT_EQ(sites.at(kPage + 16), 8u);
}

TEST(UnitSites, OfManyThreadsAreEachThreadsOwn) {
  auto sites = UnitSites::make(64, 1).value();
  std::vector<std::thread> threads;
  for (SiteId site = 1; site <= 4; ++site) {
    threads.emplace_back([&, site] {
      for (std::uint64_t page = 0; page < 64; ++page) sites.note(page * kPage + site * 64, 64, site);
    });
  }
  for (std::thread& one : threads) one.join();
  for (SiteId site = 1; site <= 4; ++site) {
    for (std::uint64_t page = 0; page < 64; ++page) EXPECT_EQ(sites.at(page * kPage + site * 64), site);
  }
}

}  // namespace
}  // namespace farheap::profile::unit_sites_test
