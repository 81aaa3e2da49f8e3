// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/size_classes.hpp"

#include <gtest/gtest.h>

namespace farheap::heap {
namespace {

TEST(SizeClasses, EverySizeGetsTheSmallestClassThatHoldsIt) {
  for (std::size_t bytes = 0; bytes <= kLargestSmall; ++bytes) {
    unsigned size_class = class_of(bytes);
    ASSERT_GE(size_class, 1u);
    ASSERT_LT(size_class, kClassCount);
    ASSERT_GE(kSizeClasses[size_class].slot_bytes, bytes);
    if (size_class > 1) {
      ASSERT_LT(kSizeClasses[size_class - 1].slot_bytes, bytes) << bytes;
    }
  }
}

TEST(SizeClasses, WasteAtMostAQuarter) {
  for (std::size_t bytes = 1; bytes <= kLargestSmall; ++bytes) {
    std::size_t waste = kSizeClasses[class_of(bytes)].slot_bytes - bytes;
    if (bytes > 48) {
      ASSERT_LE(waste * 4, bytes + waste) << bytes;
    } else {
      ASSERT_LE(waste, 15u) << bytes;  // the alignment of 16 is what rules here
    }
  }
}

TEST(SizeClasses, SlabsWasteLittleAndHoldAFew) {
  for (unsigned i = 1; i < kClassCount; ++i) {
    const SizeClass& sizes = kSizeClasses[i];
    std::size_t slab = sizes.granules * kGranuleBytes;
    EXPECT_GE(sizes.slots, 4u) << sizes.slot_bytes;
    EXPECT_LE(sizes.slots * sizes.slot_bytes, slab);
    EXPECT_LE((slab - sizes.slots * sizes.slot_bytes) * 16, slab) << sizes.slot_bytes;
    EXPECT_LE(sizes.granules, 8u);
    EXPECT_EQ(sizes.slot_bytes % (sizes.slot_bytes >= 16 ? 16 : 8), 0u);
  }
}

TEST(SizeClasses, TheReciprocalDividesExactly) {
  for (unsigned i = 1; i < kClassCount; ++i) {
    const SizeClass& sizes = kSizeClasses[i];
    for (std::size_t offset = 0; offset < sizes.granules * kGranuleBytes; ++offset) {
      ASSERT_EQ(sizes.slot_at(offset), offset / sizes.slot_bytes) << offset << " " << sizes.slot_bytes;
    }
  }
}

}  // namespace
}  // namespace farheap::heap
