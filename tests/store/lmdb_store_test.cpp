// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What lmdb: promises beyond the contract.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

// LMDB calls a write that only fitted in part an input/output error, which ended programs instead of pausing them.
TEST(LmdbStore, AShortWriteOnAFullDiskWasAnInputOutputError) {
  if (!is_in_build("lmdb:")) GTEST_SKIP() << "NOT TESTED: lmdb: is not in this build";
  TemporaryFolder folder;
  const std::string disk = folder.path() + "/disk";
  std::filesystem::create_directory(disk);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=4M") != 0) {
    std::cerr << "NOT TESTED: a full disk: mounting one needs root\n";
    GTEST_SKIP() << "mounting a small file system needs root";
  }
  {
    auto store = open_or_fail("lmdb:" + disk);
    const auto bytes = make_blocks(0, 256, 4096);
    Put first{.block = 0, .from = bytes};
    EXPECT_TRUE(store->put({&first, 1}));
    std::vector<Put> rest;
    for (std::uint64_t i = 1; i < 6; ++i) rest.push_back({.block = i * 256, .from = bytes});
    const auto status = store->put(rest);
    EXPECT_TRUE(!status && status.error().code == ErrorCode::kNoSpace) << (status ? "" : status.error().message());
    EXPECT_EQ(rest.back().outcome, Outcome::kNoSpace);
    EXPECT_EQ(expect_blocks(*store, 0, 256), Outcome::kOk);
    EXPECT_EQ(expect_blocks(*store, 256, 1), Outcome::kAbsent);
    EXPECT_EQ(mount("none", disk.c_str(), "tmpfs", MS_REMOUNT, "size=32M"), 0);
    EXPECT_TRUE(store->put(rest));
    Bytes into(bytes.size());
    EXPECT_EQ(get_blocks(*store, 5 * 256, into).outcome, Outcome::kOk);
    EXPECT_TRUE(into == bytes);
  }
  EXPECT_EQ(umount2(disk.c_str(), MNT_DETACH), 0);
}

// It was told that it is no folder.
TEST(LmdbStore, AFolderThatIsMissingWasSaidToBeNone) {
  if (!is_in_build("lmdb:")) GTEST_SKIP() << "NOT TESTED: lmdb: is not in this build";
  TemporaryFolder folder;
  const auto missing = open_store("lmdb:" + folder.path() + "/there");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message().find("No such file or directory; make the folder (mkdir -p)"), std::string::npos)
      << missing.error().message();
  std::ofstream(folder.path() + "/file") << "text";
  const auto file = open_store("lmdb:" + folder.path() + "/file");
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message().find("it is not a folder"), std::string::npos) << file.error().message();
}

// Whether another process could lock the file alone.
bool is_unlocked(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(path.c_str(), O_RDWR);
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_len = 1;
    _exit(file >= 0 && fcntl(file, F_SETLK, &range) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

// LMDB's lock says that the table of readers is in use. It is the process's, and went with the first one that was
// closed.
TEST(LmdbStore, AStoreThatWasOpenedTwiceInAProcessLostItsLock) {
  if (!is_in_build("lmdb:")) GTEST_SKIP() << "NOT TESTED: lmdb: is not in this build";
  TemporaryFolder folder;
  const std::string uri = "lmdb:" + folder.path() + "/kept";
  const auto bytes = make_blocks(0, 4, 4096);
  {
    auto first = open_or_fail(uri, {.lifetime = Lifetime::kKeep});
    {
      auto second = open_or_fail(uri, {.lifetime = Lifetime::kKeep});
      Put put{.block = 0, .from = bytes};
      EXPECT_TRUE(second->put({&put, 1}));
    }
    EXPECT_FALSE(is_unlocked(folder.path() + "/kept-lock"));
    EXPECT_EQ(expect_blocks(*first, 0, 4), Outcome::kOk);
    const auto other = open_store(uri + "?sync=asked", {.lifetime = Lifetime::kKeep});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::kConflict);
  }
  EXPECT_TRUE(is_unlocked(folder.path() + "/kept-lock"));
}

// It was mapped with the 1 TiB that it may come to have, where only so much was free.
TEST(LmdbStore, LookingAtOneNeededATerabyteOfAddresses) {
  if (!is_in_build("lmdb:")) GTEST_SKIP() << "NOT TESTED: lmdb: is not in this build";
  const TemporaryFolder folder;
  const std::string uri = "lmdb:" + folder.path() + "/kept";
  put_blocks(*open_or_fail(uri, {.lifetime = Lifetime::kKeep}), 0, make_blocks(0, 3, 4096));
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  ASSERT_TRUE(statm >> pages);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little{.rlim_cur = pages * 4096 + (std::uint64_t{4} << 30), .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  const auto there = is_store_there(uri);
  const auto all = list_stores(uri);
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(there && *there) << (there ? "" : there.error().message());
  EXPECT_TRUE(all && all->size() == 1);
}

}  // namespace
}  // namespace farheap::test
