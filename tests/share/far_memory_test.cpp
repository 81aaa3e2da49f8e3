// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stays in memory of a far heap's bytes, and what does not.
#include <gtest/gtest.h>

#include <vector>

#include "share/far_memory.hpp"
#include "store/decorator.hpp"

namespace farheap::share {
namespace {

class Counting final : public store::Decorator {
 public:
  Counting() : Decorator("counting", open_store("mem:", {}).value()) {}
  Status get(std::span<Get> batch) override {
    gets += batch.size();
    return Decorator::get(batch);
  }
  Status put(std::span<Put> batch) override {
    if (is_broken) return fail(ErrorCode::kIo, "cannot write", "counting", "it is broken");
    puts += batch.size();
    return Decorator::put(batch);
  }
  // Of the two, mem: serves parts; a decorator does not by itself.
  Outcome get_part(std::uint64_t block, std::size_t offset, std::span<std::byte> into) override {
    if (!serves_parts) return Outcome::kPending;
    ++parts;
    return inner_->get_part(block, offset, into);
  }
  std::size_t gets = 0, puts = 0, parts = 0;
  bool is_broken = false;
  bool serves_parts = false;
};

std::byte read_byte(FarMemory& memory, std::uint64_t at) {
  std::byte value{};
  EXPECT_TRUE(memory.read(at, {&value, 1}));
  return value;
}

TEST(FarMemory, BlocksStayInMemoryUntilTheyAreFlushed) {
  Counting store;
  FarMemory memory(store, FarMemory::Users::kOne, 16);
  const std::byte value{7};
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(memory.write(5, {&value, 1}));
  EXPECT_EQ(read_byte(memory, 5), value);
  EXPECT_EQ(store.gets, 1u);
  EXPECT_EQ(store.puts, 0u);
  ASSERT_TRUE(memory.flush());
  EXPECT_EQ(store.puts, 1u);
}

TEST(FarMemory, DirectAccessesReachTheStoreWithEveryCall) {
  Counting store;
  FarMemory memory(store, FarMemory::Users::kOne, 16, FarMemory::Keep::kForWrites);
  const std::byte value{7};
  for (std::size_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(memory.write(5, {&value, 1}));
    EXPECT_EQ(store.puts, i);
  }
  const std::size_t before = store.gets;
  for (std::size_t i = 1; i <= 10; ++i) {
    EXPECT_EQ(read_byte(memory, 5), value);
    EXPECT_EQ(store.gets, before + i);
  }
  EXPECT_EQ(store.puts, 10u);
}

// A store of a character was a get and a put: on servers twice the time of what it is.
TEST(FarMemory, AWriteToAPartOfABlockIsAPutAndNoGet) {
  Counting store;
  FarMemory memory(store, FarMemory::Users::kOne, 16, FarMemory::Keep::kForWrites);
  std::byte value{1};
  ASSERT_TRUE(memory.write(5, {&value, 1}));
  EXPECT_EQ(store.gets, 1u);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(memory.write(100 + i, {&value, 1}));
  EXPECT_EQ(store.gets, 1u);
  EXPECT_EQ(store.puts, 11u);
  std::vector<std::byte> whole(2 * 4096, std::byte{3});  // two blocks of their own, and nothing to know of them
  ASSERT_TRUE(memory.write(4096, whole));
  EXPECT_EQ(store.gets, 1u);
  EXPECT_EQ(read_byte(memory, 5), std::byte{1});
  EXPECT_EQ(read_byte(memory, 4096 + 17), std::byte{3});
}

// A load of one byte copied its block from the store.
TEST(FarMemory, ADirectReadOfAPartIsNoGetOfTheBlock) {
  Counting store;
  store.serves_parts = true;
  FarMemory memory(store, FarMemory::Users::kOne, 16, FarMemory::Keep::kForWrites);
  EXPECT_EQ(read_byte(memory, 5), std::byte{0});  // absent
  std::byte value{7};
  ASSERT_TRUE(memory.write(5, {&value, 1}));
  ASSERT_TRUE(memory.write(4096 + 5, {&value, 1}));
  const std::size_t before = store.gets;
  for (std::size_t i = 1; i <= 10; ++i) {
    value = std::byte(i);
    ASSERT_TRUE(memory.write(5, {&value, 1}));
    EXPECT_EQ(read_byte(memory, 5), value);
    EXPECT_EQ(store.parts, i + 1);
  }
  EXPECT_EQ(store.gets, before);
  std::vector<std::byte> both(4096 + 1);  // in two blocks
  ASSERT_TRUE(memory.read(5, both));
  EXPECT_EQ(both.front(), std::byte{10});
  EXPECT_EQ(both.back(), std::byte{7});
  EXPECT_EQ(store.gets, before + 2);
}

// Where blocks stay in memory, theirs are newer than the store's.
TEST(FarMemory, WhatIsInMemoryIsNotAskedOfTheStoreInParts) {
  Counting store;
  store.serves_parts = true;
  FarMemory memory(store, FarMemory::Users::kOne, 16);
  const std::byte value{7};
  ASSERT_TRUE(memory.write(5, {&value, 1}));
  EXPECT_EQ(read_byte(memory, 5), value);
  EXPECT_EQ(store.parts, 0u);
}

// More than fits at once, so that a call goes in parts.
TEST(FarMemory, DirectAccessesReadWhatTheyWrote) {
  Counting store;
  FarMemory memory(store, FarMemory::Users::kOne, 2, FarMemory::Keep::kForWrites);
  std::vector<std::byte> from(50000), into(50000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 7 + i / 256);
  ASSERT_TRUE(memory.write(3000, from));
  ASSERT_TRUE(memory.read(3000, into));
  EXPECT_EQ(from, into);
  EXPECT_EQ(read_byte(memory, 2999), std::byte{0});
  EXPECT_EQ(read_byte(memory, 53000), std::byte{0});
}

TEST(FarMemory, DirectReadsDoNotTellWhatCouldNotBeWritten) {
  Counting store;
  FarMemory memory(store, FarMemory::Users::kOne, 16, FarMemory::Keep::kForWrites);
  std::byte value{7};
  ASSERT_TRUE(memory.write(5, {&value, 1}));
  store.is_broken = true;
  value = std::byte{8};
  EXPECT_EQ(memory.write(5, {&value, 1}).error().code, ErrorCode::kIo);
  EXPECT_EQ(read_byte(memory, 5), std::byte{7});
  store.is_broken = false;
  value = std::byte{9};
  ASSERT_TRUE(memory.write(6, {&value, 1}));
  EXPECT_EQ(read_byte(memory, 5), std::byte{7}) << "a later write of the same block brought what had failed";
}

}  // namespace
}  // namespace farheap::share
