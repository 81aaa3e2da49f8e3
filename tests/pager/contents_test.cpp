// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/contents.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/units.hpp"

namespace farheap::pager {
namespace {

using base::kPageBytes;

TEST(Contents, AnyBitMakesAnotherHashAndNoZeroPage) {
  std::vector<std::byte> page(kPageBytes);
  const PageHash zero = hash_page(page.data());
  EXPECT_TRUE(is_zero_page(page.data()));
  for (std::size_t bit = 0; bit < kPageBytes * 8; ++bit) {
    page[bit / 8] = std::byte{1} << bit % 8;
    ASSERT_FALSE(is_zero_page(page.data())) << bit;
    ASSERT_FALSE(hash_page(page.data()) == zero) << bit;
    page[bit / 8] = std::byte{0};
  }
  EXPECT_TRUE(hash_page(page.data()) == zero);
}

TEST(Contents, OnlyPagesWithTheHashesOfTheStoreAreStored) {
  for (std::uint32_t pages : {1u, 7u}) {
    std::vector<std::byte> bytes(pages * kPageBytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i / 100 % 251);
    KnownContents known;
    EXPECT_FALSE(known.is_stored(0, hash_page(bytes.data()))) << "nothing is known at first";
    known.set_hashes(bytes.data(), pages);
    for (std::uint32_t i = 0; i < pages; ++i) EXPECT_TRUE(known.is_stored(i, hash_page(bytes.data() + i * kPageBytes)));
    bytes.back() ^= std::byte{1};
    EXPECT_FALSE(known.is_stored(pages - 1, hash_page(bytes.data() + (pages - 1) * kPageBytes)));
    if (pages > 1) {
      EXPECT_FALSE(known.is_stored(0, hash_page(bytes.data() + kPageBytes))) << "right page, wrong place";
    }
    known.forget();
    EXPECT_FALSE(known.is_stored(0, hash_page(bytes.data())));
  }
}

TEST(Contents, OfBlocksThatJoinEachPageKeepsWhatIsKnownOfIt) {
  constexpr std::uint32_t kPages = 8;
  std::vector<std::byte> bytes(kPages * kPageBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i / 100 % 251);
  const auto hash_at = [&](std::uint32_t page) { return hash_page(bytes.data() + page * kPageBytes); };
  KnownContents one, three, nothing, whole;
  one.set_hashes(bytes.data() + 2 * kPageBytes, 1);
  three.set_hashes(bytes.data() + 4 * kPageBytes, 3);
  whole.join(kPages, nothing, 0, 2, 0);
  EXPECT_EQ(whole.kind(), KnownContents::Kind::kNothing);
  whole.join(kPages, one, 0, 1, 2);
  whole.join(kPages, nothing, 0, 1, 3);
  whole.join(kPages, three, 1, 2, 5);
  for (std::uint32_t page = 0; page < kPages; ++page) {
    EXPECT_EQ(whole.is_stored(page, hash_at(page)), page == 2 || page == 5 || page == 6) << page;
  }
}

}  // namespace
}  // namespace farheap::pager
