// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The power fails while a segment is kept in a file: whatever of the system calls on FILE and on FILE.versions has
// reached the disk, each for itself, it opens at the last commit that returned, or at one that was tried since.
//
// The files are in memory: what a disk would have is modelled, and its speed is nothing to wait for.
//
// FARHEAP_POWER_LOSS=N runs N seeds (without it, as many as a few seconds allow).
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "recorded_files.hpp"
#include "versions_worker.hpp"

namespace farheap::segment {
namespace {

using testing::RecordedFiles;

constexpr StoreOptions kKept{.block_bytes = kPageBytes, .lifetime = Lifetime::kKeep, .use_io_uring = false};

class FilePowerLoss : public ::testing::Test {
 protected:
  FilePowerLoss() {
    std::string name = "/dev/shm/farheap-power-loss-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~FilePowerLoss() override { std::filesystem::remove_all(folder_); }

  // The stores of `seed`, in so many steps; one in so many syncs fails, if it is not 0.
  void run(unsigned seed, int steps, unsigned one_sync_fails_of, const std::string& decorator = "");
  void look_at(std::vector<RecordedFiles::Pair>& left, VersionsWorker& worker,
               const std::vector<const ModelState*>& states, const std::string& when);
  [[nodiscard]] static unsigned seeds(unsigned otherwise) {
    const char* const wanted = std::getenv("FARHEAP_POWER_LOSS");
    return wanted != nullptr ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : otherwise;
  }

  std::string folder_;
  std::string decorator_;
  std::size_t images_ = 0, failed_ = 0, lost_ = 0;
};

void FilePowerLoss::look_at(std::vector<RecordedFiles::Pair>& left, VersionsWorker& worker,
                            const std::vector<const ModelState*>& states, const std::string& when) {
  const std::string image = folder_ + "/image";
  for (const RecordedFiles::Pair& pair : left) {
    RecordedFiles::write(pair, image);
    auto store = open_store(decorator_ + "file:" + image, kKept);
    ASSERT_TRUE(store.has_value()) << when << ": " << store.error().message();
    ASSERT_EQ(opens_at_one_of(**store, worker, states), "") << when;
    ++images_;
  }
  left.clear();
}

void FilePowerLoss::run(unsigned seed, int steps, unsigned one_sync_fails_of, const std::string& decorator) {
  decorator_ = decorator;
  const std::string file = folder_ + "/" + std::to_string(seed);
  const std::string uri = decorator + "file:" + file;
  std::mt19937_64 random(seed);
  auto store = open_store(uri, kKept);
  ASSERT_TRUE(store.has_value()) << store.error().message();
  auto versions = Versions::create(**store, {});
  ASSERT_TRUE(versions.has_value()) << versions.error().message();
  RecordedFiles files(file);
  files.chance.seed(seed);
  VersionsWorker worker(seed);
  std::vector<ModelState> possible{worker.committed()};
  std::vector<RecordedFiles::Pair> left;
  using Left = RecordedFiles::Left;
  files.changed = [&] {
    if (random() % 96 != 0) return;
    for (const auto kind : {Left::kAll, Left::kSome, Left::kNone}) left.push_back(files.lost(kind, random));
  };
  for (int i = 0; i < steps; ++i) {
    files.one_sync_fails_of = i % 10 < 7 ? one_sync_fails_of : 0;
    const std::vector<ModelState> before = possible;
    const std::string what = worker.step(**versions);
    const std::string when = "seed " + std::to_string(seed) + ", step " + std::to_string(i) + ", " + what;
    ASSERT_TRUE(!what.starts_with("!") || files.failed_syncs() != 0) << when;
    if (what == "commit") possible = {worker.committed()};
    possible.push_back(worker.written());
    for (const ModelState& one : worker.attempted()) possible.push_back(one);
    std::vector<const ModelState*> meanwhile = all_of(before);
    for (const ModelState& one : possible) meanwhile.push_back(&one);
    look_at(left, worker, meanwhile, "in " + when);
    if (what == "commit") {
      left.push_back(files.lost(random() % 2 == 0 ? Left::kNone : Left::kSome, random));
      look_at(left, worker, all_of(possible), "after " + when);
    }
    if (HasFatalFailure()) return;
    // What is read is what was written, or an error.
    const std::string seen = worker.compare(**versions, worker.written());
    const bool is_lost = seen.find("has lost it") != seen.npos || seen.find("have it any more") != seen.npos ||
                         (!decorator.empty() && seen.find("cannot read") != seen.npos);
    ASSERT_TRUE(seen.empty() || is_lost) << "after " << when << ": " << seen;
    lost_ += is_lost;
    if (!is_lost && i % 25 != 24) continue;
    files.one_sync_fails_of = 0;
    versions = Result<std::unique_ptr<Versions>>(nullptr);
    store = open_store(uri, kKept);  // the next process
    ASSERT_TRUE(store.has_value()) << store.error().message();
    files.watch_lost_pages();
    versions = Versions::open(**store);
    ASSERT_TRUE(versions.has_value()) << when << ": " << versions.error().message();
    const auto found =
        std::ranges::find_if(possible, [&](const ModelState& one) { return worker.compare(**versions, one).empty(); });
    ASSERT_NE(found, possible.end()) << "reopened after " << when;
    worker.reopened(ModelState(*found));
  }
  EXPECT_GT(files.calls(), 100u);
  failed_ += files.failed_syncs();
}

TEST_F(FilePowerLoss, EveryPairOfFileAndTableOpensAtACommit) {
  for (unsigned seed = 1; seed <= seeds(4) && !HasFatalFailure(); ++seed) run(seed, 100, 0);
  std::printf("%zu pairs\n", images_);
  EXPECT_GT(images_, 100u);
}

TEST_F(FilePowerLoss, EveryPairOpensAtACommitWhereSyncsFailAndLoseWhatWasWritten) {
  for (unsigned seed = 1; seed <= seeds(6) && !HasFatalFailure(); ++seed) run(seed, 100, 5);
  std::printf("%zu pairs, %zu failed syncs, %zu with losses\n", images_, failed_, lost_);
  EXPECT_GT(images_, 100u);
  EXPECT_GT(failed_, 20u);
  EXPECT_GT(lost_, 2u);
}

TEST_F(FilePowerLoss, EveryPairBelowSealsOpensAtACommit) {
  for (unsigned seed = 1; seed <= seeds(3) && !HasFatalFailure(); ++seed) run(seed, 60, 0, "checksum+");
  std::printf("%zu pairs\n", images_);
  EXPECT_GT(images_, 50u);
}

TEST_F(FilePowerLoss, EveryPairBelowSealsOpensAtACommitWhereSyncsFailAndLoseWhatWasWritten) {
  for (unsigned seed = 1; seed <= seeds(3) && !HasFatalFailure(); ++seed) run(seed, 60, 5, "checksum+");
  std::printf("%zu pairs, %zu failed syncs, %zu with losses\n", images_, failed_, lost_);
  EXPECT_GT(images_, 50u);
}

// Its page of the table is not written to again, and so the kernel had nothing to write.
TEST_F(FilePowerLoss, WhatWasCountedBeforeAFailedSyncIsThereAfterAGoodOne) {
  std::mt19937_64 random(1);
  unsigned failed = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const std::string file = folder_ + "/counts" + std::to_string(seed);
    auto store = open_store("file:" + file, kKept);
    ASSERT_TRUE(store.has_value()) << store.error().message();
    RecordedFiles files(file);
    files.chance.seed(seed);
    ASSERT_EQ((*store)->add("times", 5).value(), 5);
    files.one_sync_fails_of = 1;
    ASSERT_FALSE((*store)->sync());  // of FILE
    files.one_sync_fails_of = 2;
    for (int i = 0; i < 8; ++i) failed += !(*store)->sync();
    files.one_sync_fails_of = 0;
    ASSERT_TRUE((*store)->sync());
    const std::string image = folder_ + "/image";
    RecordedFiles::write(files.lost(RecordedFiles::Left::kNone, random), image);
    auto left = open_store("file:" + image, kKept);
    ASSERT_TRUE(left.has_value()) << left.error().message();
    EXPECT_EQ((*left)->add("times", 0).value(), 5) << "seed " << seed;
  }
  EXPECT_GT(failed, 20u);
}

// LMDB writes its trees once. A second handle of this process would not have heard of it.
TEST_F(FilePowerLoss, AnLmdbStoreWhoseSyncFailedNeverSyncsAgain) {
  if (std::ranges::none_of(store_kinds(), [](const StoreKind& one) { return one.scheme == "lmdb"; })) {
    GTEST_SKIP() << "SKIPPED, NOT TESTED: built without LMDB";
  }
  const std::string file = folder_ + "/blocks.mdb", uri = "lmdb:" + file + "?sync=asked";
  auto store = open_store(uri, kKept), other = open_store(uri, kKept);
  ASSERT_TRUE(store.has_value() && other.has_value()) << store.error().message();
  alignas(kPageBytes) std::byte bytes[kPageBytes] = {};
  Put put{.block = 5, .from = bytes};
  ASSERT_TRUE((*store)->put({&put, 1}));
  ASSERT_TRUE((*store)->sync());
  {
    const testing::FailingSyncs failing(file);
    ASSERT_TRUE((*store)->put({&put, 1}));
    ASSERT_FALSE((*store)->sync());
  }
  for (Store* one : {store->get(), other->get()}) {
    ASSERT_TRUE(one->put({&put, 1}));
    const Status late = one->sync();
    ASSERT_FALSE(late);
    EXPECT_NE(late.error().remedy.find("farheap store copy"), std::string::npos) << late.error().message();
  }
}

}  // namespace
}  // namespace farheap::segment
