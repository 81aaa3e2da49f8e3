// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "share/lease_record.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace farheap::share {
namespace {

const LeaseRecord kWhole{.use = LeaseUse::kWrites,
                         .owner = 1,
                         .token = 2,
                         .beat = 3,
                         .commit = 4,
                         .process = {5, 6, 7, 8},
                         .name = "'prog' (process 7 on host)"};

TEST(LeaseRecord, ComesBackAsItWasWritten) {
  std::vector<std::byte> block(4096, std::byte{0xEE});
  encode(kWhole, block);
  const auto record = decode(block);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->use, kWhole.use);
  EXPECT_EQ(record->owner, 1u);
  EXPECT_EQ(record->token, 2u);
  EXPECT_EQ(record->beat, 3u);
  EXPECT_EQ(record->commit, 4u);
  EXPECT_EQ(record->process, kWhole.process);
  EXPECT_EQ(record->name, kWhole.name);
}

TEST(LeaseRecord, ANameThatIsTooLongIsCut) {
  std::vector<std::byte> block(512);
  LeaseRecord record = kWhole;
  record.name = std::string(1000, 'x');
  encode(record, block);
  EXPECT_EQ(decode(block)->name, std::string(LeaseRecord::kLongestName, 'x'));
}

TEST(LeaseRecord, EveryFlippedBitOfItIsFound) {
  std::vector<std::byte> block(4096);
  encode(kWhole, block);
  constexpr std::size_t kRecordBytes = 360;  // what follows is padding of the block
  for (std::size_t bit = 0; bit < kRecordBytes * 8; ++bit) {
    block[bit / 8] ^= std::byte(1u << bit % 8);
    EXPECT_FALSE(decode(block)) << "bit " << bit;
    block[bit / 8] ^= std::byte(1u << bit % 8);
  }
  EXPECT_TRUE(decode(block));
}

TEST(LeaseRecord, BytesOfOthersAreNone) {
  std::mt19937_64 random(7);
  std::vector<std::byte> block(4096);
  for (int i = 0; i < 1000; ++i) {
    for (auto& byte : block) byte = std::byte(random());
    EXPECT_FALSE(decode(std::span(block).first(random() % block.size())));
  }
  EXPECT_FALSE(decode({}));
}

}  // namespace
}  // namespace farheap::share
