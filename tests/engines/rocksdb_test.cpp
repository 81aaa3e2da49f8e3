// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rocksdb: in process and in farheap-engines.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iostream>

#include "engines/engine_table.hpp"
#include "store/contract.hpp"
#include "tests/engines/beside_fixture.hpp"

// RocksDB's own, too: those of this program.
static std::atomic<bool> g_syncs_fail{false};
extern "C" __attribute__((visibility("default"))) int fdatasync(int file) {
  if (!g_syncs_fail) return static_cast<int>(syscall(SYS_fdatasync, file));
  errno = EIO;
  return -1;
}

namespace farheap::test {
namespace {

const StoreOptions kKept{.lifetime = Lifetime::kKeep};

store::StoreResult open_here(const std::string& place, const StoreOptions& options = {}, const std::string& sync = {}) {
  store::StoreUri uri{.engine = "rocksdb", .place = place};
  if (!sync.empty()) uri.parameters.push_back({"rocksdb", "sync", sync});
  return engines::open_rocksdb(place, store::Parameters(uri, "rocksdb"), options);
}

void expect_contract(const StoreOptions& options, bool in_process, const std::string& parameters = {}) {
  const ServedBy served(FARHEAP_ENGINES_PROGRAM);
  for (const auto& check : store::contract_checks()) {
    const TemporaryFolder folder;
    const auto open = [&](const StoreOptions& how) {
      if (in_process) return open_here(folder.path(), how, parameters);
      return open_store("rocksdb:" + folder.path() + (parameters.empty() ? "" : "?sync=" + parameters), how);
    };
    // RocksDB's threads do not come along into a forked child.
    const auto answer = store::run_contract_check(
        check, {.open = open, .options = options, .describes = "rocksdb:" + folder.path(), .may_fork = !in_process});
    for (const auto& words : answer.words) {
      if (answer.verdict == store::Verdict::kBroken) ADD_FAILURE() << check.name << ": " << words;
    }
    wait_until_all_ended(FARHEAP_ENGINES_PROGRAM);  // those of killed clients, too
    std::error_code error;
    if (options.lifetime == Lifetime::kScratch) {
      EXPECT_TRUE(std::filesystem::is_empty(folder.path(), error)) << check.name << ": something was left behind";
    }
  }
}

TEST(RocksDbContract, ScratchInProcess) { expect_contract({}, true); }
TEST(RocksDbContract, KeptInProcess) { expect_contract(kKept, true, "asked"); }
TEST(RocksDbContract, Scratch) { expect_contract({}, false); }
TEST(RocksDbContract, ScratchSectors) { expect_contract({.block_bytes = 512}, false); }
TEST(RocksDbContract, ScratchLarge) { expect_contract({.block_bytes = 65536}, false); }
TEST(RocksDbContract, Kept) { expect_contract(kKept, false, "asked"); }
TEST(RocksDbContract, KeptAndDurable) { expect_contract(kKept, false); }

class RocksDb : public testing::Test {
 protected:
  ServedBy served_{FARHEAP_ENGINES_PROGRAM};
  TemporaryFolder folder_;
  std::string uri_ = "rocksdb:" + folder_.path() + "/db";
};

TEST(RocksDbSync, OneThatFailedIsNotForgotten) {
  const TemporaryFolder folder;
  auto store = open_here(folder.path(), kKept, "asked");
  ASSERT_TRUE(store) << store.error().message();
  put_blocks(**store, 0, make_blocks(0, 4, 4096));
  ASSERT_TRUE((*store)->sync());
  put_blocks(**store, 0, make_blocks(4, 4, 4096));
  g_syncs_fail = true;
  EXPECT_FALSE((*store)->sync());
  g_syncs_fail = false;
  const Status late = (*store)->sync();
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().remedy.find("farheap store copy"), std::string::npos) << late.error().message();
}

TEST_F(RocksDb, IsSeenFromOutside) {
  EXPECT_FALSE(is_store_there(uri_).value());
  (void)put_blocks(*open_or_fail(uri_, kKept), 0, make_blocks(0, 4, 4096));
  EXPECT_TRUE(is_store_there(uri_).value());
  const auto scratch = open_or_fail("rocksdb:" + folder_.path());
  const auto all = list_stores("rocksdb:" + folder_.path());
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  for (const auto& one : *all) {
    EXPECT_EQ(one.block_bytes, 4096u);
    EXPECT_EQ(one.uri == uri_, one.lifetime == Lifetime::kKeep);
    EXPECT_EQ(one.in_use, one.lifetime == Lifetime::kScratch);
  }
  EXPECT_TRUE(remove_store(uri_));
  EXPECT_FALSE(is_store_there(uri_).value());
  EXPECT_EQ(remove_store(uri_).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/db"));
}

TEST_F(RocksDb, OneThatIsOpenElsewhereIsRefusedAndNotRemoved) {
  const auto store = open_or_fail(uri_, kKept);
  (void)put_blocks(*store, 0, make_blocks(0, 4, 4096));
  const auto second = open_store(uri_, kKept);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(remove_store(uri_).error().code, ErrorCode::kConflict);
  EXPECT_EQ(expect_blocks(*store, 0, 4), Outcome::kOk);
}

TEST_F(RocksDb, OtherBlocksAndNewerFormatsAreRefusedInWords) {
  (void)open_or_fail(uri_, kKept);
  const auto larger = open_store(uri_, {.block_bytes = 8192, .lifetime = Lifetime::kKeep});
  ASSERT_FALSE(larger);
  EXPECT_NE(larger.error().message().find("4096"), std::string::npos);
  std::ofstream(folder_.path() + "/db/FARHEAP") << "farheap rocksdb 2 4096\n";
  const auto newer = open_store(uri_, kKept);
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message().find("format 2"), std::string::npos);
}

TEST_F(RocksDb, AnothersFilesAreNotTouched) {
  std::filesystem::create_directory(folder_.path() + "/db");
  std::ofstream(folder_.path() + "/db/CURRENT") << "MANIFEST-000001\n";
  EXPECT_FALSE(open_store(uri_, kKept));
  EXPECT_EQ(remove_store(uri_).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(line_of(folder_.path() + "/db/CURRENT", "MANIFEST"), "-000001");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path() + "/db"), {}), 1);
}

TEST_F(RocksDb, BesideOtherFilesItHasAFolderOfItsOwn) {
  std::ofstream(folder_.path() + "/letter") << "words";
  const std::string uri = "rocksdb:" + folder_.path();
  for (int i = 0; i < 2; ++i) {
    const auto store = open_or_fail(uri, kKept);
    if (i == 0) (void)put_blocks(*store, 0, make_blocks(0, 4, 4096));
    EXPECT_EQ(expect_blocks(*store, 0, 4), Outcome::kOk);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/farheap.rocksdb/CURRENT"));
  EXPECT_TRUE(remove_store(uri));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/letter"));
}

TEST_F(RocksDb, WhatIsAcknowledgedOutlivesAKilledProcess) {
  for (const std::string sync : {"each", "asked"}) {
    const auto store = open_or_fail(uri_ + "?sync=" + sync, kKept);
    for (std::uint64_t i = 0; i < 50; ++i) {
      (void)put_blocks(*store, i, make_blocks(i, 1, 4096));
      if (i % 10 != 9) continue;
      for (const pid_t process : processes_of(FARHEAP_ENGINES_PROGRAM)) kill(process, SIGKILL);
    }
    EXPECT_EQ(expect_blocks(*store, 0, 50), Outcome::kOk);
    EXPECT_EQ(store->usage()->blocks, 50u);
    ASSERT_TRUE(store->erase(0, 100));
  }
}

TEST_F(RocksDb, WhatAKilledRunLeftIsRemovedByTheNext) {
  const std::string uri = "rocksdb:" + folder_.path();
  auto killed = open_or_fail(uri);
  (void)put_blocks(*killed, 0, make_blocks(0, 64, 4096));
  for (const pid_t process : processes_of(FARHEAP_ENGINES_PROGRAM)) kill(process, SIGKILL);
  wait_until_all_ended(FARHEAP_ENGINES_PROGRAM);
  const auto count = [&] { return std::distance(std::filesystem::directory_iterator(folder_.path()), {}); };
  EXPECT_EQ(count(), 1);
  const auto next = open_or_fail(uri);
  EXPECT_EQ(count(), 1);
  Bytes into(4096);
  Get get{.block = 0, .into = into};
  EXPECT_FALSE(killed->get({&get, 1}));
}

TEST_F(RocksDb, ALinkWithTheNameOfALeftoverDoesNotClearWhatItLeadsTo) {
  (void)put_blocks(*open_or_fail(uri_, kKept), 0, make_blocks(0, 4, 4096));
  ASSERT_TRUE(is_store_there(uri_).value());
  TemporaryFolder shared;
  std::filesystem::create_symlink(folder_.path() + "/db", shared.path() + "/.farheap-rocksdb-abcdef");
  (void)open_or_fail("rocksdb:" + shared.path());
  EXPECT_TRUE(is_store_there(uri_).value());
}

TEST_F(RocksDb, AFolderOfSomebodyElseIsNotOpened) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const std::string theirs = folder_.path() + "/db/farheap.rocksdb";
  std::filesystem::create_directories(theirs);
  ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
  const auto opened = open_store(uri_, kKept);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kPermission);
  EXPECT_TRUE(std::filesystem::is_empty(theirs));
}

TEST_F(RocksDb, WrongParametersAreRefused) {
  EXPECT_EQ(open_store("rocksdb:").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(open_store(uri_ + "?sync=never", kKept).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(open_store("rocksdb:/nowhere/at/all", kKept).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open_store("rocksdb:/nowhere/at/all").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace farheap::test
