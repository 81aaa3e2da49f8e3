// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "share/lease_record.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace farheap::share {
namespace {

const LeaseRecord kWhole{.use = LeaseUse::kWrites,
                         .owner = 1,
                         .token = 2,
                         .beat = 3,
                         .commit = 4,
                         .fence = 5,
                         .reserved = 6,
                         .process = {5, 6, 7, 8, 9},
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
  EXPECT_EQ(record->fence, 5u);
  EXPECT_EQ(record->reserved, 6u);
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
  constexpr std::size_t kRecordBytes = 384;  // what follows is padding of the block
  for (std::size_t bit = 0; bit < kRecordBytes * 8; ++bit) {
    block[bit / 8] ^= std::byte(1u << bit % 8);
    EXPECT_FALSE(decode(block)) << "bit " << bit;
    block[bit / 8] ^= std::byte(1u << bit % 8);
  }
  EXPECT_TRUE(decode(block));
}

// Bytes as format 1 had them: without a time namespace and a fence, which are not known then.
TEST(LeaseRecord, OneOfTheFirstFormatIsReadWithoutATimeNamespace) {
  std::vector<std::byte> block(4096);
  encode(kWhole, block);
  constexpr std::size_t kChecksum = 8, kFormat = 16, kEnd = 360;
  const std::uint64_t first_format = 1;
  std::memcpy(block.data() + kFormat, &first_format, sizeof first_format);
  std::fill(block.begin() + kEnd, block.end(), std::byte{0});
  const std::uint64_t checksum = XXH3_64bits(block.data() + kFormat, kEnd - kFormat);
  std::memcpy(block.data() + kChecksum, &checksum, sizeof checksum);
  const auto record = decode(block);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->token, kWhole.token);
  EXPECT_EQ(record->name, kWhole.name);
  os::ProcessName process = kWhole.process;
  process.time_namespace = 0;
  EXPECT_EQ(record->process, process);
  EXPECT_EQ(record->fence, 0u);
  EXPECT_GT(record->reserved, std::uint64_t{1} << 20) << "its owner did not say how far it writes";
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
