// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/page_owners.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace farheap::plan::page_owners_test {
namespace {

using Objects = std::vector<profile::LargeObject>;
constexpr std::uint64_t kPage = 4096;

// By looking at each of them.
std::optional<std::size_t> last_of(const Objects& objects, pager::PageNumber page) {
  const std::uint64_t middle = page * kPage + kPage / 2;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (middle - objects[i].first >= objects[i].bytes || middle < objects[i].first) continue;
    if (!found || objects[*found].born < objects[i].born) found = i;
  }
  return found;
}

// The name of those that ever had a byte of the page, if it is one.
std::optional<std::size_t> name_of(const Objects& objects, const std::vector<std::size_t>& named,
                                   pager::PageNumber page) {
  std::set<std::size_t> names;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const bool has_a_byte = objects[i].bytes != 0 && objects[i].first < (page + 1) * kPage &&
                            objects[i].first + objects[i].bytes > page * kPage;
    if (has_a_byte) names.insert(named[i]);
  }
  return names.size() == 1 ? std::optional(*names.begin()) : std::nullopt;
}

TEST(PageOwners, AreThoseThatAreFoundOneByOne) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Objects objects;
    std::vector<std::size_t> named;
    for (std::uint64_t i = random() % 12; i != 0; --i) {
      const std::uint64_t first = random() % (40 * kPage);
      objects.push_back({.site = 0,
                         .first = first,
                         .bytes = random() % (random() % 4 == 0 ? 40 * kPage : 2 * kPage),
                         .born = i,
                         .died = 0});
      named.push_back(random() % 4);
    }
    const PageOwners owners(objects, named);
    for (pager::PageNumber page = 0; page < 90; ++page) {
      ASSERT_EQ(owners.last(page), last_of(objects, page)) << round << ", page " << page;
      const auto alone = owners.alone(page);
      ASSERT_EQ(alone ? std::optional(named[*alone]) : std::nullopt, name_of(objects, named, page))
          << round << ", page " << page;
    }
  }
}

// To look for a page among those that end behind it was to look at all of them where one was as wide as all.
TEST(PageOwners, OfManyObjectsWithinAWideOneAreFewPieces) {
  constexpr std::size_t kMany = 100'000;
  Objects objects = {{.site = 0, .first = 0, .bytes = 4 * kMany * kPage, .born = 1, .died = 0}};
  for (std::size_t i = 0; i < kMany; ++i) {
    objects.push_back({.site = 0, .first = 2 * i * kPage, .bytes = kPage, .born = i + 2, .died = 0});
  }
  std::vector<std::size_t> named(objects.size());
  for (std::size_t i = 0; i < named.size(); ++i) named[i] = i;
  const PageOwners owners(objects, named);
  EXPECT_LE(owners.pieces(), 4 * objects.size())
      << "two of each kind for each object, which a binary search looks through";
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(owners.last(2 * i), i + 1);
    ASSERT_EQ(owners.last(2 * i + 1), 0u);
    ASSERT_EQ(owners.alone(2 * i), std::nullopt);
    ASSERT_EQ(owners.alone(2 * i + 1), 0u);
  }
  EXPECT_EQ(owners.last(4 * kMany), std::nullopt);
}

// Each lies in the one before.
TEST(PageOwners, OfObjectsWithinEachOtherAreFewPieces) {
  constexpr std::size_t kMany = 100'000;
  Objects objects;
  for (std::size_t i = 0; i < kMany; ++i) {
    objects.push_back({.site = 0, .first = i * kPage, .bytes = 2 * (kMany - i) * kPage, .born = i, .died = 0});
  }
  const std::vector<std::size_t> named(objects.size());
  const PageOwners owners(objects, named);
  EXPECT_LE(owners.pieces(), 4 * objects.size());
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(owners.last(i), i);
  EXPECT_EQ(owners.alone(kMany), kMany - 1) << "all are lives of one";
}

}  // namespace
}  // namespace farheap::plan::page_owners_test
