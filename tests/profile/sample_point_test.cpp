// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "profile/sample_point.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace farheap::profile {
namespace {

constexpr std::uint64_t kPage = kSamplePageBytes;

// Page by page, as the words have it.
SampledPages by_looking(std::uint64_t offset, std::uint64_t bytes) {
  SampledPages found;
  for (std::uint64_t page = offset / kPage; page <= (offset + bytes) / kPage; ++page) {
    const std::uint64_t point = page * kPage + sample_point(page);
    if (point < offset || point >= offset + bytes) continue;
    if (found.count() == 0) found.first = page;
    found.end = page + 1;
  }
  return found;
}

void expect_as_looked_at(std::uint64_t offset, std::uint64_t bytes) {
  const SampledPages wanted = by_looking(offset, bytes), found = sampled_pages(offset, bytes);
  ASSERT_EQ(found.count(), wanted.count()) << offset << " + " << bytes;
  if (wanted.count() == 0) return;
  ASSERT_EQ(found.first, wanted.first) << offset << " + " << bytes;
  ASSERT_EQ(found.end, wanted.end) << offset << " + " << bytes;
}

TEST(SamplePoint, IsAMultipleOf16InItsPage) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t page = i < 50000 ? static_cast<std::uint64_t>(i) : random() >> 12;
    ASSERT_EQ(sample_point(page) % 16, 0u) << page;
    ASSERT_LT(sample_point(page), kPage) << page;
  }
}

TEST(SamplePoint, IsEverywhereInPagesAboutAsOften) {
  constexpr unsigned kPages = 256 * 1000;
  unsigned often[256] = {};
  for (std::uint64_t page = 0; page < kPages; ++page) ++often[sample_point(page) / 16];
  double chi_squared = 0;
  for (const unsigned times : often) {
    EXPECT_NEAR(times, 1000, 200);
    chi_squared += (times - 1000.0) * (times - 1000.0) / 1000;
  }
  EXPECT_LT(chi_squared, 255 + 5 * std::sqrt(2 * 255.0));
}

TEST(SampledPages, AreThoseWhosePointIsInTheObject) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t offset = (random() >> (24 + random() % 40)) & ~std::uint64_t{15};
    expect_as_looked_at(offset, random() >> (46 + random() % 18));
    expect_as_looked_at(offset + random() % 16, random() % (3 * kPage));
  }
}

TEST(SampledPages, AreRightAtEachByteOfAFewPages) {
  for (std::uint64_t offset = 0; offset < 3 * kPage; offset += 8) {
    for (const std::uint64_t bytes : {0ul, 1ul, 8ul, 15ul, 16ul, 17ul, 4080ul, 4095ul, 4096ul, 4097ul, 8192ul}) {
      expect_as_looked_at(offset, bytes);
    }
  }
}

TEST(SampledPages, OfNothingAreNone) {
  for (std::uint64_t offset = 0; offset < 4 * kPage; ++offset) EXPECT_EQ(sampled_pages(offset, 0).count(), 0u);
}

// What lies side by side shares no page and leaves none out.
TEST(SampledPages, OfObjectsThatFillTheHeapAreEachPageOnce) {
  std::mt19937_64 random(3);
  std::uint64_t offset = 0, pages = 0;
  while (offset < 20000 * kPage) {
    const std::uint64_t bytes = std::min<std::uint64_t>(16 * (1 + random() % 2000), 20000 * kPage - offset);
    const SampledPages mine = sampled_pages(offset, bytes);
    if (mine.count() != 0) {
      ASSERT_EQ(mine.first, pages);
      pages = mine.end;
    }
    offset += bytes;
  }
  EXPECT_EQ(pages, 20000u);
}

TEST(SampledPages, OfManyObjectsAreAsManyAsTheirBytesFill) {
  std::mt19937_64 random(4);
  for (const std::uint64_t size : {16u, 32u, 48u, 112u, 512u, 1040u, 4096u, 4112u, 10000u, 70000u}) {
    const std::uint64_t objects = std::max<std::uint64_t>(20000, 40'000'000 / size);
    const std::uint64_t step = (size + 15) / 16 * 16;
    std::uint64_t in_a_row = 0, scattered = 0;
    for (std::uint64_t i = 0; i < objects; ++i) {
      in_a_row += sampled_pages(i * step, size).count();
      scattered += sampled_pages((random() % (std::uint64_t{1} << 40)) & ~std::uint64_t{15}, size).count();
    }
    const double wanted = static_cast<double>(size * objects) / kPage;
    EXPECT_NEAR(static_cast<double>(in_a_row), wanted, 0.04 * wanted) << size;
    EXPECT_NEAR(static_cast<double>(scattered), wanted, 0.04 * wanted) << size;
  }
}

TEST(SampledPages, OfALargeObjectAreAllOfItsMiddle) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t offset = (random() >> 30) & ~std::uint64_t{15}, bytes = 2 * kPage + random() % (1 << 20);
    const SampledPages pages = sampled_pages(offset, bytes);
    EXPECT_LE(pages.first, (offset + kPage - 1) / kPage);
    EXPECT_GE(pages.first, offset / kPage);
    EXPECT_GE(pages.end, (offset + bytes) / kPage);
    EXPECT_LE(pages.end, (offset + bytes) / kPage + 1);
  }
}

}  // namespace
}  // namespace farheap::profile
