// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of include/farheap/store.hpp, over every engine and many stacks of decorators.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

struct Subject {
  std::string name;
  std::string uri;  // @ stands for the temporary folder
  StoreOptions options;
};

// What a test name says when it fails.
void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.uri; }

std::string expand(std::string uri, const std::string& folder) {
  for (auto at = uri.find('@'); at != std::string::npos; at = uri.find('@')) uri.replace(at, 1, folder);
  return uri;
}

class StoreContract : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    if (!is_in_build(GetParam().uri)) GTEST_SKIP() << "NOT IN THIS BUILD: " << GetParam().uri;
    store_ = open();
    block_bytes_ = store_->limits().block_bytes;
  }
  std::unique_ptr<Store> open() { return open_or_fail(expand(GetParam().uri, folder_.path()), GetParam().options); }
  bool can(Capability one) { return has(store_->capabilities(), one); }
  bool is_kept() const { return GetParam().options.lifetime == Lifetime::kKeep; }
  Bytes blocks(std::uint64_t block, std::size_t count, std::uint64_t tint = 0) {
    return make_blocks(block, count, block_bytes_, tint);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::size_t block_bytes_ = 0;
};

TEST_P(StoreContract, KnowsItself) {
  const auto limits = store_->limits();
  EXPECT_EQ(limits.block_bytes, GetParam().options.block_bytes);
  EXPECT_GE(limits.largest_value_bytes, limits.block_bytes);
  EXPECT_EQ(limits.largest_value_bytes % limits.block_bytes, 0u);
  EXPECT_GE(limits.largest_batch_bytes, limits.largest_value_bytes);
  EXPECT_GE(limits.largest_batch_operations, 1u);
  const auto uri = expand(GetParam().uri, folder_.path());
  EXPECT_EQ(store_->describe(), uri.substr(0, uri.find('?')));
}

TEST_P(StoreContract, WhatWasNeverPutIsAbsent) {
  EXPECT_EQ(expect_blocks(*store_, 0, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, 123456, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, 7, 9), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, std::uint64_t{1} << 50, 1), Outcome::kAbsent);
}

TEST_P(StoreContract, WhatWasPutIsGot) {
  const auto entry = put_blocks(*store_, 5, blocks(5, 1));
  EXPECT_EQ(entry.outcome, Outcome::kOk);
  EXPECT_NE(entry.version, 0u);
  Bytes into(block_bytes_);
  const auto got = get_blocks(*store_, 5, into);
  EXPECT_EQ(got.outcome, Outcome::kOk);
  EXPECT_EQ(got.version, entry.version);
  EXPECT_TRUE(into == blocks(5, 1));
  EXPECT_EQ(expect_blocks(*store_, 4, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, 6, 1), Outcome::kAbsent);
}

TEST_P(StoreContract, RunsOverlapAsTheyLike) {
  (void)put_blocks(*store_, 10, blocks(10, 20));
  EXPECT_EQ(expect_blocks(*store_, 10, 20), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store_, 13, 5), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store_, 29, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store_, 9, 2), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, 29, 2), Outcome::kAbsent);
  (void)put_blocks(*store_, 25, blocks(25, 10, 1));
  (void)put_blocks(*store_, 8, blocks(8, 4, 2));
  EXPECT_EQ(expect_blocks(*store_, 8, 4, 2), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store_, 12, 13, 0), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store_, 25, 10, 1), Outcome::kOk);
}

TEST_P(StoreContract, RunsOfTheLargestLengthPassAndLongerOnesAreRefused) {
  const auto limits = store_->limits();
  const std::size_t most = limits.largest_value_bytes / block_bytes_;
  (void)put_blocks(*store_, 3, blocks(3, most));
  EXPECT_EQ(expect_blocks(*store_, 3, most), Outcome::kOk);
  const Bytes longer(limits.largest_value_bytes + block_bytes_);
  Put entry{.block = 0, .from = longer};
  auto status = store_->put({&entry, 1});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(entry.outcome, Outcome::kFailed);
  EXPECT_EQ(expect_blocks(*store_, 3, most), Outcome::kOk);
}

TEST_P(StoreContract, BatchesOverTheLimitAreRefusedWhole) {
  const auto limits = store_->limits();
  Bytes bytes = blocks(0, 1);
  std::vector<Put> batch(limits.largest_batch_operations + 1);
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = {.block = i, .from = bytes};
  auto status = store_->put(batch);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(expect_blocks(*store_, 0, 1), Outcome::kAbsent);
  Get odd{.block = 0, .into = std::span(bytes).first(block_bytes_ - 1)};
  ASSERT_FALSE(store_->get({&odd, 1}));
  EXPECT_EQ(odd.outcome, Outcome::kFailed);
}

TEST_P(StoreContract, EveryEntryOfABatchHasItsOwnOutcome) {
  constexpr std::size_t kRuns = 100;
  std::vector<Bytes> bytes;
  std::vector<Put> puts;
  for (std::size_t i = 0; i < kRuns; ++i) {
    bytes.push_back(blocks(i * 10, 1 + i % 4));
  }
  for (std::size_t i = 0; i < kRuns; ++i) puts.push_back({.block = i * 10, .from = bytes[i]});
  auto status = store_->put(puts);
  ASSERT_TRUE(status) << status.error().message();
  for (const auto& entry : puts) EXPECT_EQ(entry.outcome, Outcome::kOk);

  std::vector<Bytes> into;
  std::vector<Get> gets;
  for (std::size_t i = 0; i < kRuns; ++i) into.emplace_back((1 + i % 4) * block_bytes_);
  for (std::size_t i = 0; i < kRuns; ++i) gets.push_back({.block = i * 10 + (i % 7 == 0 ? 5 : 0), .into = into[i]});
  ASSERT_TRUE(store_->get(gets));
  for (std::size_t i = 0; i < kRuns; ++i) {
    EXPECT_EQ(gets[i].outcome, i % 7 == 0 ? Outcome::kAbsent : Outcome::kOk) << i;
    if (i % 7 != 0) {
      EXPECT_TRUE(into[i] == bytes[i]) << i;
    }
  }
}

TEST_P(StoreContract, BuffersNeedNotBeAligned) {
  for (std::size_t shift : {1u, 8u, 511u}) {
    Bytes from(3 * block_bytes_ + shift);
    const auto wanted = blocks(40, 3, shift);
    std::memcpy(from.data() + shift, wanted.data(), wanted.size());
    Put put{.block = 40, .from = std::span(from).subspan(shift)};
    ASSERT_TRUE(store_->put({&put, 1}));
    Bytes into(2 * block_bytes_ + shift);
    Bytes other(block_bytes_ + shift);
    Get gets[] = {{.block = 41, .into = std::span(into).subspan(shift)},
                  {.block = 40, .into = std::span(other).subspan(shift)}};
    ASSERT_TRUE(store_->get(gets));
    EXPECT_EQ(0, std::memcmp(into.data() + shift, wanted.data() + block_bytes_, 2 * block_bytes_));
    EXPECT_EQ(0, std::memcmp(other.data() + shift, wanted.data(), block_bytes_));
  }
}

TEST_P(StoreContract, AKnownVersionIsNotCopied) {
  const auto put = put_blocks(*store_, 2, blocks(2, 1));
  Bytes into(block_bytes_, std::byte{0xEE});
  const auto got = get_blocks(*store_, 2, into, put.version);
  if (!can(Capability::kVersions)) {
    EXPECT_EQ(got.outcome, Outcome::kOk);
    EXPECT_EQ(got.version, 1u);
    return;
  }
  EXPECT_EQ(got.outcome, Outcome::kSame);
  EXPECT_EQ(got.version, put.version);
  EXPECT_EQ(into[0], std::byte{0xEE});
  const auto again = put_blocks(*store_, 2, blocks(2, 1, 1));
  EXPECT_NE(again.version, put.version);
  EXPECT_EQ(get_blocks(*store_, 2, into, put.version).outcome, Outcome::kOk);
  EXPECT_TRUE(into == blocks(2, 1, 1));
}

TEST_P(StoreContract, OnlyTheExpectedVersionIsOverwritten) {
  if (!can(Capability::kVersions)) {
    const auto bytes = blocks(2, 1);
    Put entry{.block = 2, .from = bytes, .expected = 0};
    auto status = store_->put({&entry, 1});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    return;
  }
  const auto first = put_blocks(*store_, 2, blocks(2, 1, 1), 0);
  ASSERT_EQ(first.outcome, Outcome::kOk);
  const auto stale = put_blocks(*store_, 2, blocks(2, 1, 2), 0);
  EXPECT_EQ(stale.outcome, Outcome::kConflict);
  EXPECT_EQ(stale.version, first.version);
  EXPECT_EQ(expect_blocks(*store_, 2, 1, 1), Outcome::kOk);
  const auto second = put_blocks(*store_, 2, blocks(2, 1, 3), stale.version);
  ASSERT_EQ(second.outcome, Outcome::kOk);
  EXPECT_EQ(put_blocks(*store_, 2, blocks(2, 1, 4), first.version).outcome, Outcome::kConflict);
  EXPECT_EQ(expect_blocks(*store_, 2, 1, 3), Outcome::kOk);
  ASSERT_TRUE(store_->erase(2, 1));
  EXPECT_EQ(put_blocks(*store_, 2, blocks(2, 1, 5), second.version).outcome, Outcome::kConflict);
  EXPECT_EQ(put_blocks(*store_, 2, blocks(2, 1, 6), 0).outcome, Outcome::kOk);
}

TEST_P(StoreContract, OneOfManyThreadsWinsEveryCompareAndSwap) {
  if (!can(Capability::kVersions)) GTEST_SKIP() << "no versions: " << store_->describe();
  const auto start = put_blocks(*store_, 9, Bytes(block_bytes_));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, version = start.version]() mutable {
      Bytes page(block_bytes_);
      for (int done = 0; done < 50;) {
        const auto got = get_blocks(*store_, 9, page);
        ASSERT_EQ(got.outcome, Outcome::kOk);
        std::uint64_t count = 0;
        std::memcpy(&count, page.data(), 8);
        ++count;
        std::memcpy(page.data(), &count, 8);
        if (put_blocks(*store_, 9, page, got.version).outcome == Outcome::kOk) ++done;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  Bytes page(block_bytes_);
  (void)get_blocks(*store_, 9, page);
  std::uint64_t count = 0;
  std::memcpy(&count, page.data(), 8);
  EXPECT_EQ(count, 200u);
}

TEST_P(StoreContract, ErasedBlocksAreAbsentAndOthersAreNot) {
  for (std::uint64_t block = 100; block < 300; block += 50) (void)put_blocks(*store_, block, blocks(block, 50));
  ASSERT_TRUE(store_->erase(110, 1));
  EXPECT_EQ(expect_blocks(*store_, 110, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, 109, 3), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, 100, 10), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store_, 111, 10), Outcome::kOk);
  ASSERT_TRUE(store_->erase(105, 150));
  EXPECT_EQ(expect_blocks(*store_, 100, 5), Outcome::kOk);
  for (std::uint64_t block = 105; block < 255; ++block) EXPECT_EQ(expect_blocks(*store_, block, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, 255, 45), Outcome::kOk);
  ASSERT_TRUE(store_->erase(0, ~std::uint64_t{0}));
  EXPECT_EQ(expect_blocks(*store_, 100, 1), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*store_, 299, 1), Outcome::kAbsent);
  ASSERT_TRUE(store_->erase(5000000, 10));
  (void)put_blocks(*store_, 110, blocks(110, 2, 9));
  EXPECT_EQ(expect_blocks(*store_, 110, 2, 9), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store_, 109, 2), Outcome::kAbsent);
}

TEST_P(StoreContract, UsageCountsWhatIsThere) {
  (void)put_blocks(*store_, 0, blocks(0, 64));
  (void)put_blocks(*store_, 32, blocks(32, 64));
  auto usage = store_->usage();
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->blocks, 96u);
  ASSERT_TRUE(store_->erase(0, 48));
  ASSERT_TRUE(store_->erase(0, 48));
  EXPECT_EQ(store_->usage()->blocks, 48u);
}

TEST_P(StoreContract, CountersAddUpOverThreads) {
  if (!can(Capability::kCounters)) {
    auto sum = store_->add("hits", 1);
    ASSERT_FALSE(sum);
    EXPECT_EQ(sum.error().code, ErrorCode::kUnavailable);
    return;
  }
  EXPECT_EQ(store_->add("hits", 0).value(), 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) EXPECT_TRUE(store_->add("hits", 1));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store_->add("hits", 0).value(), 1000);
  EXPECT_EQ(store_->add("other", -5).value(), -5);
  EXPECT_EQ(store_->add("hits", 0).value(), 1000);
}

TEST_P(StoreContract, AChildReadsAndWritesAfterFork) {
  if (expand(GetParam().uri, "").find("file:") == std::string::npos) {
    GTEST_SKIP() << "only file: promises this: " << store_->describe();
  }
  (void)put_blocks(*store_, 0, blocks(0, 32));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool ok = expect_blocks(*store_, 0, 32) == Outcome::kOk;
    Bytes first(block_bytes_);
    Bytes second(4 * block_bytes_);
    Get gets[] = {{.block = 1, .into = first}, {.block = 8, .into = second}};
    ok = ok && store_->get(gets).has_value() && first == blocks(1, 1) && second == blocks(8, 4);
    ok = ok && put_blocks(*store_, 1000, blocks(1000, 3)).outcome == Outcome::kOk;
    ok = ok && expect_blocks(*store_, 1000, 3) == Outcome::kOk;
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(expect_blocks(*store_, 0, 32), Outcome::kOk);
}

TEST_P(StoreContract, WhatIsKeptIsThereAgain) {
  if (!is_kept()) {
    (void)put_blocks(*store_, 3, blocks(3, 2));
    store_.reset();
    store_ = open();
    EXPECT_EQ(expect_blocks(*store_, 3, 2), Outcome::kAbsent) << "a scratch store outlived its handle";
    return;
  }
  const auto put = put_blocks(*store_, 3, blocks(3, 1));
  (void)put_blocks(*store_, 700, blocks(700, 40));
  (void)put_blocks(*store_, 4, blocks(4, 1));
  ASSERT_TRUE(store_->erase(4, 1));
  if (can(Capability::kCounters)) {
    ASSERT_TRUE(store_->add("kept", 41));
  }
  ASSERT_TRUE(store_->sync());
  store_.reset();
  store_ = open();
  Bytes into(block_bytes_);
  const auto got = get_blocks(*store_, 3, into);
  EXPECT_EQ(got.outcome, Outcome::kOk);
  EXPECT_EQ(got.version, put.version);
  EXPECT_TRUE(into == blocks(3, 1));
  EXPECT_EQ(expect_blocks(*store_, 700, 40), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store_, 4, 1), Outcome::kAbsent);
  EXPECT_EQ(store_->usage()->blocks, 41u);
  if (can(Capability::kCounters)) {
    EXPECT_EQ(store_->add("kept", 1).value(), 42);
  }
  EXPECT_NE(put_blocks(*store_, 4, blocks(4, 1)).version, put.version);
}

TEST_P(StoreContract, TwoHandlesReadEachOthersWrites) {
  if (!can(Capability::kManyProcesses)) GTEST_SKIP() << "for one process only: " << store_->describe();
  auto other = open();
  (void)put_blocks(*store_, 6, blocks(6, 5));
  EXPECT_EQ(expect_blocks(*other, 6, 5), Outcome::kOk);
  const auto put = put_blocks(*other, 6, blocks(6, 1, 2));
  EXPECT_EQ(expect_blocks(*store_, 6, 1, 2), Outcome::kOk);
  EXPECT_EQ(put_blocks(*store_, 6, blocks(6, 1, 3), put.version).outcome, Outcome::kOk);
  EXPECT_EQ(put_blocks(*other, 6, blocks(6, 1, 4), put.version).outcome, Outcome::kConflict);
  ASSERT_TRUE(other->erase(8, 1));
  EXPECT_EQ(expect_blocks(*store_, 8, 1), Outcome::kAbsent);
}

TEST_P(StoreContract, FourProcessesCountAndSwapTogether) {
  if (!can(Capability::kManyProcesses)) GTEST_SKIP() << "for one process only: " << store_->describe();
  (void)put_blocks(*store_, 9, Bytes(block_bytes_));
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto mine = open();
      bool ok = true;
      for (int i = 0; i < 250; ++i) ok = ok && mine->add("hits", 1).has_value();
      Bytes page(block_bytes_);
      for (int done = 0; ok && done < 50;) {
        const auto got = get_blocks(*mine, 9, page);
        ok = got.outcome == Outcome::kOk;
        std::uint64_t count = 0;
        std::memcpy(&count, page.data(), 8);
        ++count;
        std::memcpy(page.data(), &count, 8);
        if (put_blocks(*mine, 9, page, got.version).outcome == Outcome::kOk) ++done;
      }
      _exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(store_->add("hits", 0).value(), 1000);
  Bytes page(block_bytes_);
  (void)get_blocks(*store_, 9, page);
  std::uint64_t count = 0;
  std::memcpy(&count, page.data(), 8);
  EXPECT_EQ(count, 200u);
}

// Each thread has blocks of its own (interleaved with the others', so that they are neighbours) and a map that says
// what must be in them.
TEST_P(StoreContract, BehavesLikeAMapUnderThreads) {
  constexpr std::uint64_t kThreads = 3;
  constexpr std::uint64_t kGroup = 8;  // blocks side by side of one thread
  constexpr std::uint64_t kGroups = 60;
  auto work = [&](std::uint64_t me) {
    std::mt19937_64 random(me + 1);
    std::map<std::uint64_t, std::uint64_t> model;  // block -> tint
    for (std::uint64_t step = 1; step <= 250; ++step) {
      const std::uint64_t group = random() % kGroups;
      const std::uint64_t low = random() % kGroup;
      const std::uint64_t count = 1 + random() % (kGroup - low);
      const std::uint64_t block = (group * kThreads + me) * kGroup + low;
      const auto tint = me << 32 | step;
      switch (random() % 4) {
        case 0:
        case 1:
          ASSERT_EQ(put_blocks(*store_, block, blocks(block, count, tint)).outcome, Outcome::kOk);
          for (auto b = block; b < block + count; ++b) model[b] = tint;
          break;
        case 2:
          ASSERT_TRUE(store_->erase(block, count));
          for (auto b = block; b < block + count; ++b) model.erase(b);
          break;
        default: {
          Bytes into(count * block_bytes_);
          const auto got = get_blocks(*store_, block, into);
          bool all = true;
          for (auto b = block; b < block + count; ++b) all = all && model.contains(b);
          ASSERT_EQ(got.outcome, all ? Outcome::kOk : Outcome::kAbsent) << block << " + " << count;
          for (std::uint64_t i = 0; all && i < count; ++i) {
            const auto wanted = blocks(block + i, 1, model[block + i]);
            ASSERT_EQ(0, std::memcmp(into.data() + i * block_bytes_, wanted.data(), block_bytes_)) << block + i;
          }
        }
      }
    }
    for (const auto& [block, tint] : model) ASSERT_EQ(expect_blocks(*store_, block, 1, tint), Outcome::kOk) << block;
  };
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (auto& thread : threads) thread.join();
}

// A reader beside writers sees one of the written states of a block, never a mix.
TEST_P(StoreContract, SingleBlocksAreNeverTorn) {
  if (!can(Capability::kLinearisable)) GTEST_SKIP() << "does not promise it: " << store_->describe();
  (void)put_blocks(*store_, 20, Bytes(block_bytes_));
  std::atomic<int> writing{2};
  auto write = [&](unsigned char which) {
    for (int i = 0; i < 200; ++i) {
      (void)put_blocks(*store_, 20, Bytes(block_bytes_, static_cast<std::byte>(which + i % 50)));
    }
    --writing;
  };
  std::thread one(write, 1);
  std::thread two(write, 100);
  Bytes into(block_bytes_);
  Version last = 0;
  std::byte seen{};
  while (writing > 0) {
    const auto got = get_blocks(*store_, 20, into, last);
    if (got.outcome == Outcome::kSame) {
      ASSERT_EQ(into[0], seen);
      continue;
    }
    ASSERT_EQ(got.outcome, Outcome::kOk);
    ASSERT_EQ(into, Bytes(block_bytes_, into[0]));
    if (can(Capability::kVersions)) last = got.version;
    seen = into[0];
  }
  one.join();
  two.join();
}

std::string name_of(const testing::TestParamInfo<Subject>& info) { return info.param.name; }

constexpr StoreOptions kKept{.lifetime = Lifetime::kKeep};
constexpr StoreOptions kPlain{.use_io_uring = false};

// A key file for every store that is kept encrypted.
StoreOptions with_key(StoreOptions options) {
  static const TemporaryFolder kFolder;
  options.encrypt_key_file = key_file_in(kFolder.path());
  return options;
}

INSTANTIATE_TEST_SUITE_P(Mem, StoreContract,
                         testing::Values(Subject{"Pages", "mem:", {}}, Subject{"Sectors", "mem:", {.block_bytes = 512}},
                                         Subject{"Large", "mem:", {.block_bytes = 65536}}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    File, StoreContract,
    testing::Values(Subject{"Scratch", "file:@", {}}, Subject{"ScratchPlain", "file:@", kPlain},
                    Subject{"ScratchNamed", "file:@/blocks", {}},
                    Subject{"ScratchSectors", "file:@", {.block_bytes = 512}},
                    Subject{"ScratchLarge", "file:@", {.block_bytes = 65536}}, Subject{"Kept", "file:@/blocks", kKept},
                    Subject{"KeptFolder", "file:@", kKept},
                    Subject{"KeptPlain", "file:@/blocks", {.lifetime = Lifetime::kKeep, .use_io_uring = false}},
                    Subject{"KeptSectors", "file:@/blocks", {.block_bytes = 512, .lifetime = Lifetime::kKeep}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Lmdb, StoreContract,
                         testing::Values(Subject{"Scratch", "lmdb:@", {}},
                                         Subject{"ScratchSectors", "lmdb:@", {.block_bytes = 512}},
                                         Subject{"ScratchLarge", "lmdb:@", {.block_bytes = 65536}},
                                         Subject{"Kept", "lmdb:@/blocks.mdb?sync=asked", kKept},
                                         Subject{"KeptFolder", "lmdb:@?sync=asked", kKept}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Decorated, StoreContract,
    testing::Values(
        Subject{"ChecksumMem", "checksum+mem:", {}}, Subject{"ChecksumFile", "checksum+file:@", {}},
        Subject{"ChecksumKept", "checksum+file:@/blocks", kKept},
        Subject{"ChecksumKeptLarge", "checksum+file:@/blocks", {.block_bytes = 65536, .lifetime = Lifetime::kKeep}},
        Subject{"ChecksumKeptLmdb", "checksum+lmdb:@/blocks?sync=asked", kKept},
        Subject{"CompressMem", "compress+mem:", {}}, Subject{"CompressFile", "compress+file:@", {}},
        Subject{"CompressLz4File", "compress+file:@?codec=lz4", {}},
        Subject{"CompressLmdb", "compress+lmdb:@?level=3", {}},
        Subject{"CompressLarge", "compress+file:@", {.block_bytes = 65536}},
        Subject{"ChecksumCompress", "checksum+compress+mem:", {}},
        Subject{"CompressChecksum", "compress+checksum+file:@", {}},
        Subject{"All", "checksum+compress+slow+faulty+mem:?delay_us=1&mb_s=10000&seed=3", {}},
        Subject{"Reversed", "faulty+slow+compress+checksum+file:@?delay_us=0", {}}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Encrypted, StoreContract,
                         testing::Values(Subject{"Mem", "encrypt+mem:", {}}, Subject{"File", "encrypt+file:@", {}},
                                         Subject{"FileSectors", "encrypt+file:@", {.block_bytes = 512}},
                                         Subject{"FileLarge", "encrypt+file:@", {.block_bytes = 65536}},
                                         Subject{"Lmdb", "encrypt+lmdb:@", {}},
                                         Subject{"Kept", "encrypt+file:@/blocks", with_key(kKept)},
                                         Subject{"KeptSectors", "encrypt+file:@/blocks",
                                                 with_key({.block_bytes = 512, .lifetime = Lifetime::kKeep})},
                                         Subject{"KeptLmdb", "encrypt+lmdb:@/blocks?sync=asked", with_key(kKept)},
                                         Subject{"Compressed", "compress+encrypt+file:@", {}},
                                         Subject{"Slow", "slow+encrypt+faulty+mem:", {}}),
                         name_of);

}  // namespace
}  // namespace farheap::test
