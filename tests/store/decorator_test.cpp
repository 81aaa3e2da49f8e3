// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the decorators are for: corruption is found, space and bytes shrink, faults come again from their seed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "base/units.hpp"
#include "store/codec.hpp"
#include "store/faulty_store.hpp"
#include "store/kinds.hpp"
#include "store/measure.hpp"
#include "store/sector_space.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

constexpr StoreOptions kKeptBlocks{.lifetime = Lifetime::kKeep};

TEST(Checksum, FindsAFlippedBitAndNamesTheBlock) {
  auto store = open_or_fail("checksum+faulty+mem:?flip=1");
  const auto bytes = make_blocks(40, 4, 4096);
  (void)put_blocks(*store, 40, bytes);
  Bytes into(4 * 4096);
  Get entry{.block = 40, .into = into};
  auto status = store->get({&entry, 1});
  ASSERT_FALSE(status);
  EXPECT_EQ(entry.outcome, Outcome::kCorrupt);
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(status.error().what, testing::ContainsRegex("block 4[0-3]"));
}

TEST(Checksum, FindsLostAndTornWrites) {
  for (const char* kind : {"lost", "torn"}) {
    auto store = open_or_fail(std::string("checksum+faulty+mem:?seed=5&") + kind + "=0.5");
    int corrupt = 0;
    for (std::uint64_t tint = 0; tint < 40; ++tint) {
      (void)put_blocks(*store, 1, make_blocks(1, 1, 4096, tint));
      Bytes into(4096);
      Get entry{.block = 1, .into = into};
      (void)store->get({&entry, 1}).has_value();
      if (entry.outcome == Outcome::kOk) {
        EXPECT_TRUE(into == make_blocks(1, 1, 4096, tint)) << kind;
      }
      corrupt += entry.outcome == Outcome::kCorrupt ? 1 : 0;
    }
    EXPECT_GT(corrupt, 5) << kind;
  }
}

TEST(Checksum, FindsDamageInAKeptFile) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/blocks";
  auto store = open_or_fail("checksum+file:" + path, kKeptBlocks);
  (void)put_blocks(*store, 0, make_blocks(0, 300, 4096));
  ASSERT_TRUE(store->sync());
  store.reset();
  const int file = open(path.c_str(), O_RDWR);
  const char byte = 'x';
  ASSERT_EQ(pwrite(file, &byte, 1, 200 * 4096 + 77), 1);  // block 198: two side blocks come before it
  close(file);
  store = open_or_fail("checksum+file:" + path, kKeptBlocks);
  Bytes into(4096);
  for (std::uint64_t block = 0; block < 300; ++block) {
    Get entry{.block = block, .into = into};
    (void)store->get({&entry, 1}).has_value();
    EXPECT_EQ(entry.outcome, block == 198 ? Outcome::kCorrupt : Outcome::kOk) << block;
  }
}

TEST(Checksum, OldOrNewAfterAnUnknownWriteAreBothRight) {
  auto store = open_or_fail("checksum+faulty+mem:?seed=9&unknown=0.5");
  int unknown = 0;
  for (std::uint64_t tint = 0; tint < 60; ++tint) {
    const auto bytes = make_blocks(1, 1, 4096, tint);
    Put entry{.block = 1, .from = bytes};
    (void)store->put({&entry, 1}).has_value();
    unknown += entry.outcome == Outcome::kUnknown ? 1 : 0;
    Bytes into(4096);
    const auto got = get_blocks(*store, 1, into);
    if (entry.outcome == Outcome::kOk) {
      EXPECT_TRUE(into == bytes);
    }
    if (entry.outcome == Outcome::kUnknown) {
      EXPECT_NE(got.outcome, Outcome::kCorrupt);
    }
  }
  EXPECT_GT(unknown, 10);
}

// Half of every block of make_blocks() repeats.
class CompressSpace : public testing::TestWithParam<const char*> {};

TEST_P(CompressSpace, ShrinksWithRunsAndWithSingleBlocks) {
  TemporaryFolder folder;
  std::string engine = GetParam();
  if (engine != "mem:") engine += folder.path();
  if (!is_in_build("compress+" + engine)) GTEST_SKIP() << "NOT IN THIS BUILD: compress+" << engine;
  for (const char* codec : {"zstd", "lz4"}) {
    if (!store::find_codec(codec)) {
      std::cerr << "NOT TESTED: this build is without " << codec << "\n";
      continue;
    }
    auto store = open_or_fail("compress+" + engine + "?codec=" + codec);
    for (std::uint64_t block = 0; block < 1024; block += 64)
      (void)put_blocks(*store, block, make_blocks(block, 64, 4096));
    const auto by_runs = store->usage()->space_bytes;
    EXPECT_LT(by_runs, 1024 * 4096 * 3 / 4) << store->describe() << " " << codec;
    for (std::uint64_t block = 0; block < 1024; ++block) {
      (void)put_blocks(*store, block * 7 % 1024, make_blocks(block * 7 % 1024, 1, 4096, 1));
    }
    EXPECT_LT(store->usage()->space_bytes, 1024 * 4096 * 8 / 10) << store->describe() << " " << codec;
    for (std::uint64_t block = 0; block < 1024; ++block) EXPECT_EQ(expect_blocks(*store, block, 1, 1), Outcome::kOk);
    (void)put_blocks(*store, 5000, Bytes(512 * 4096));  // zeros are for nothing
    EXPECT_LT(store->usage()->space_bytes, 1024 * 4096 * 8 / 10);
    ASSERT_TRUE(store->erase(0, 6000));
    EXPECT_LT(store->usage()->space_bytes, base::kMiB);
    EXPECT_EQ(store->usage()->blocks, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, CompressSpace, testing::Values("mem:", "file:", "lmdb:"));

TEST(Compress, WhatDoesNotShrinkIsStoredAsItIs) {
  auto store = open_or_fail("compress+mem:");
  Bytes noise(16 * 4096);
  std::uint64_t state = 1;
  for (auto& byte : noise) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  (void)put_blocks(*store, 0, noise);
  EXPECT_EQ(store->usage()->space_bytes, 16u * 4096);
  Bytes into(noise.size());
  EXPECT_EQ(get_blocks(*store, 0, into).outcome, Outcome::kOk);
  EXPECT_TRUE(into == noise);
}

TEST(Compress, DamageIsCorruptAndNeverACrash) {
  auto store = open_or_fail("compress+faulty+mem:?flip=1&seed=2");
  int corrupt = 0;
  for (std::uint64_t block = 0; block < 200; ++block) {
    (void)put_blocks(*store, block, make_blocks(block, 1, 4096));
    Bytes into(4096);
    Get entry{.block = block, .into = into};
    (void)store->get({&entry, 1}).has_value();
    EXPECT_TRUE(entry.outcome == Outcome::kCorrupt || entry.outcome == Outcome::kOk);
    corrupt += entry.outcome == Outcome::kCorrupt ? 1 : 0;
  }
  EXPECT_GT(corrupt, 0);
}

TEST(Compress, KeepingIsRefusedInWords) {
  TemporaryFolder folder;
  auto opened = open_store("compress+file:" + folder.path() + "/blocks", kKeptBlocks);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Codec, RoundTripsAndRefusesWhatIsNoPackedBlock) {
  const auto block = make_blocks(3, 1, 4096);
  for (const char* name : {"zstd", "lz4"}) {
    const auto found = store::find_codec(name);
    if (!found) {
      std::cerr << "NOT TESTED: this build is without " << name << "\n";
      continue;
    }
    const auto codec = *found;
    Bytes packed(4096);
    const auto bytes = store::pack(codec, 1, block, packed);
    ASSERT_GT(bytes, 8u);
    ASSERT_LT(bytes, 3000u);
    Bytes back(4096);
    EXPECT_TRUE(store::unpack(std::span(packed).first(bytes), back));
    EXPECT_TRUE(back == block);
    EXPECT_FALSE(store::unpack(std::span(packed).first(bytes - 1), back)) << "cut off";
    EXPECT_FALSE(store::unpack(std::span(packed).first(7), back));
    Bytes larger(8192);
    EXPECT_FALSE(store::unpack(std::span(packed).first(bytes), larger)) << "another size";
    packed[1] = std::byte{9};
    EXPECT_FALSE(store::unpack(std::span(packed).first(bytes), back)) << "another codec";
  }
}

TEST(SectorSpace, JoinsAndReusesWhatComesBack) {
  store::SectorSpace space(100);
  EXPECT_EQ(space.take(10), 0u);
  EXPECT_EQ(space.take(20), 10u);
  EXPECT_EQ(space.take(5), 30u);
  EXPECT_FALSE(space.give({0, 10}));
  EXPECT_EQ(space.take(4), 0u);
  EXPECT_FALSE(space.give({30, 5}));
  EXPECT_FALSE(space.give({10, 20}));  // joins 4..35
  EXPECT_EQ(space.take(31), 4u);
  EXPECT_EQ(space.end(), 35u);
  EXPECT_EQ(space.take(200), 35u);
  const auto back = space.give({35, 200});
  ASSERT_TRUE(back);
  EXPECT_EQ(back->first, 35u);
  EXPECT_EQ(back->count, 200u);
}

std::vector<Outcome> outcomes_of(const std::string& uri) {
  auto store = open_or_fail(uri);
  std::vector<Outcome> found;
  const auto bytes = make_blocks(0, 2, 4096);
  for (std::uint64_t i = 0; i < 300; ++i) {
    Put put{.block = i, .from = bytes};
    (void)store->put({&put, 1}).has_value();
    found.push_back(put.outcome);
    Bytes into(2 * 4096);
    Get get{.block = i, .into = into};
    (void)store->get({&get, 1}).has_value();
    found.push_back(get.outcome);
    if (into != bytes) found.push_back(Outcome::kPending);  // stands for wrong bytes
  }
  return found;
}

TEST(Faulty, TheSameSeedIsTheSameFaults) {
  const std::string rates = "&error=0.05&torn=0.05&lost=0.05&short=0.05&flip=0.05&unknown=0.05";
  const auto first = outcomes_of("faulty+mem:?seed=7" + rates);
  EXPECT_EQ(first, outcomes_of("faulty+mem:?seed=7" + rates));
  EXPECT_NE(first, outcomes_of("faulty+mem:?seed=8" + rates));
  for (const auto wanted : {Outcome::kOk, Outcome::kFailed, Outcome::kUnknown, Outcome::kAbsent, Outcome::kPending}) {
    EXPECT_THAT(first, testing::Contains(wanted));
  }
}

TEST(Faulty, IsControlledFromATest) {
  store::FaultyStore faulty(open_or_fail("mem:"), {});
  (void)put_blocks(faulty, 0, make_blocks(0, 1, 4096));
  EXPECT_EQ(faulty.faults(), 0u);
  faulty.set_plan({.error = 1});
  Bytes into(4096);
  Get entry{.block = 0, .into = into};
  EXPECT_FALSE(faulty.get({&entry, 1}));
  EXPECT_FALSE(faulty.erase(0, 1));
  EXPECT_FALSE(faulty.add("x", 1));
  EXPECT_FALSE(faulty.sync());
  EXPECT_EQ(faulty.faults(), 4u);
  faulty.set_plan({});
  EXPECT_EQ(expect_blocks(faulty, 0, 1), Outcome::kOk);
}

TEST(Faulty, FillsUpAndHasRoomAgain) {
  auto store = open_or_fail("faulty+mem:?full_after=1M");
  const auto bytes = make_blocks(0, 128, 4096);
  (void)put_blocks(*store, 0, bytes);
  (void)put_blocks(*store, 128, bytes);
  Put entry{.block = 256, .from = bytes};
  auto status = store->put({&entry, 1});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(entry.outcome, Outcome::kNoSpace);
  ASSERT_TRUE(store->erase(0, 128));
  EXPECT_TRUE(store->put({&entry, 1}));
}

TEST(Slow, TakesAtLeastWhatItWasTold) {
  auto store = open_or_fail("slow+mem:?delay_us=2000&mb_s=100");
  const auto bytes = make_blocks(0, 256, 4096);
  const auto start = std::chrono::steady_clock::now();
  (void)put_blocks(*store, 0, bytes);  // 1 MiB at 100 MB/s is 10 ms, and 2 ms delay
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(12));
}

TEST(Measure, FindsFiguresAndCleansUp) {
  TemporaryFolder folder;
  for (const std::string uri : {"mem:", "checksum+compress+mem:", "file:"}) {
    auto store = open_or_fail(uri == "file:" ? uri + folder.path() : uri);
    auto found = store::measure_store(*store, {.bytes = 4 << 20, .seconds = 60, .rounds = 2});
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_GE(found->size(), 19u);
    for (const auto& figure : *found) {
      EXPECT_GT(figure.min, 0) << figure.name;
      EXPECT_LE(figure.min, figure.median) << figure.name;
      EXPECT_LE(figure.median, figure.max) << figure.name;
    }
    EXPECT_EQ(store->usage()->blocks, 0u);
    EXPECT_EQ(store->add("farheap.bench", 0).value(), 0);
  }
  store::FaultyStore broken(open_or_fail("mem:"), {.full_after = base::kMiB});
  EXPECT_FALSE(store::measure_store(broken, {.bytes = 4 << 20, .seconds = 60, .rounds = 2}));
  EXPECT_EQ(broken.usage()->blocks, 0u);
}

// Of what was put since the last good sync a half goes, and what was put before stays.
TEST(Faulty, ASyncThatFailsLosesWhatWasPutSinceTheLastOne) {
  auto store = open_or_fail("faulty+mem:?seed=3");
  auto& faulty = dynamic_cast<store::FaultyStore&>(*store);
  put_blocks(*store, 0, make_blocks(0, 16, 4096));
  ASSERT_TRUE(store->sync());
  faulty.set_plan({.seed = 3, .sync_lost = 1});
  put_blocks(*store, 8, make_blocks(100, 16, 4096));  // 8 over old ones, 8 anew
  ASSERT_FALSE(store->sync());
  std::vector<std::byte> bytes(4096);
  int is_new = 0, is_old = 0, is_absent = 0;
  for (std::uint64_t block = 0; block < 24; ++block) {
    Get get{.block = block, .into = bytes};
    ASSERT_TRUE(store->get({&get, 1}));
    const auto has = [&](std::uint64_t number) { return bytes == make_blocks(number, 1, 4096); };
    if (block < 8) {
      EXPECT_TRUE(has(block));
    } else if (get.outcome == Outcome::kAbsent) {
      EXPECT_GE(block, 16u);
      ++is_absent;
    } else if (has(block + 92)) {
      ++is_new;
    } else {
      EXPECT_TRUE(has(block));
      ++is_old;
    }
  }
  EXPECT_GT(is_new, 0);
  EXPECT_GT(is_old, 0);
  EXPECT_GT(is_absent, 0);
  faulty.set_plan({});
  EXPECT_TRUE(store->sync());
}

}  // namespace
}  // namespace farheap::test
