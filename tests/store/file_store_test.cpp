// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What file: promises beyond the contract.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <optional>

#include "base/units.hpp"
#include "os/io_ring.hpp"
#include "store/side_table.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

const StoreOptions kKept{.lifetime = Lifetime::kKeep};

bool is_empty(const std::string& folder) { return std::filesystem::is_empty(folder); }

TEST(FileStore, ScratchHasNoName) {
  TemporaryFolder folder;
  auto by_folder = open_or_fail("file:" + folder.path());
  EXPECT_TRUE(is_empty(folder.path()));
  auto by_name = open_or_fail("file:" + folder.path() + "/blocks");
  (void)put_blocks(*by_name, 0, make_blocks(0, 8, 4096));
  EXPECT_TRUE(is_empty(folder.path()));
  EXPECT_EQ(expect_blocks(*by_name, 0, 8), Outcome::kOk);
}

// A writer was killed between the room for its table and the table's magic: the store could not be opened again.
TEST(FileStore, ATableThatWasLeftUnfinishedIsMadeAnew) {
  TemporaryFolder folder;
  const std::string file = folder.path() + "/blocks", table = file + ".versions";
  constexpr int kRoom = 64 << 10;
  for (const int bytes : {0, 1, 4096, kRoom}) {
    for (const bool with_format : {false, true}) {
      std::ofstream(file).close();
      std::string left(static_cast<std::size_t>(bytes), '\0');
      if (with_format && bytes >= 4096) left[8] = 1;
      std::ofstream(table) << left;
      put_blocks(*open_or_fail("file:" + file, kKept), 3, make_blocks(3, 2, 4096));
      EXPECT_EQ(expect_blocks(*open_or_fail("file:" + file, kKept), 3, 2), Outcome::kOk) << bytes;
      EXPECT_TRUE(remove_store("file:" + file));
    }
  }
  std::ofstream(file).close();
  std::ofstream(table) << std::string(kRoom + 8, '\0');  // there were words in it
  EXPECT_EQ(open_store("file:" + file, kKept).error().code, ErrorCode::kCorrupt);
}

// A process that cannot open the file anew (it has gone to another root, or has no descriptor left) shares the file
// description with its children; they had its locks.
TEST(SideTableLocks, ChildrenThatCannotOpenTheFileAreExcludedAsAnyOther) {
  const int file = memfd_create("table", MFD_CLOEXEC);
  auto opened = store::SideTable::open(file, 4096, "table");
  ASSERT_TRUE(opened) << opened.error().message();
  store::SideTable& table = **opened;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{3, 3};  // all below are taken
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) _exit(1);
    std::optional<store::SideTable::Guard> guard(std::in_place, table, 1);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      const store::SideTable::Guard same(table, 1);
      _exit(write(ends[1], "+", 1) == 1 ? 0 : 2);
    }
    pollfd in{ends[0], POLLIN, 0};
    const bool excluded = poll(&in, 1, 300) == 0;
    guard.reset();
    int status = -1;
    if (waitpid(grandchild, &status, 0) != grandchild) _exit(3);
    _exit(excluded ? status : 4);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  char one = 0;
  EXPECT_EQ(read(ends[0], &one, 1), 1);
  close(ends[0]);
  close(ends[1]);
}

TEST(FileStore, GetsInFlightAreAnsweredInAnyOrder) {
  if (!os::has_io_uring()) GTEST_SKIP() << "NOT TESTED: this kernel has no io_uring";
  TemporaryFolder folder;
  auto store = open_or_fail("file:" + folder.path());
  (void)put_blocks(*store, 0, make_blocks(0, 64, 4096));
  constexpr unsigned kMost = 8;
  auto flying = store->gets_in_flight(kMost);
  ASSERT_TRUE(flying);
  EXPECT_EQ(flying->take(), nullptr);
  struct Free {
    void operator()(std::byte* at) const { std::free(at); }
  };
  std::unique_ptr<std::byte, Free> room(static_cast<std::byte*>(std::aligned_alloc(4096, (kMost + 1) * 4 * 4096)));
  std::vector<Get> entries(kMost + 1);
  const auto place = [&](std::size_t i) { return std::span(room.get() + i * 4 * 4096, (1 + i % 4) * 4096); };
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i <= kMost; ++i) {
      entries[i] = {.block = (7 * i + round) % 60, .into = place(i)};
      EXPECT_EQ(flying->begin(entries[i]), i < kMost) << "more than were asked for";
    }
    for (unsigned taken = 0; taken < kMost;) {
      const Get* answered = flying->take();
      if (answered == nullptr) continue;
      ++taken;
      ASSERT_EQ(answered->outcome, Outcome::kOk);
      const Bytes found(answered->into.begin(), answered->into.end());
      EXPECT_TRUE(found == make_blocks(answered->block, answered->into.size() / 4096, 4096));
    }
    EXPECT_EQ(flying->take(), nullptr);
  }
}

TEST(FileStore, GetsThatCannotFlyAreLeftToGet) {
  if (!os::has_io_uring()) GTEST_SKIP() << "NOT TESTED: this kernel has no io_uring";
  TemporaryFolder folder;
  auto store = open_or_fail("file:" + folder.path());
  (void)put_blocks(*store, 0, make_blocks(0, 4, 4096));
  auto flying = store->gets_in_flight(4);
  ASSERT_TRUE(flying);
  alignas(4096) static std::byte bytes[3 * 4096];
  Get absent{.block = 3, .into = {bytes, 2 * 4096}};
  EXPECT_FALSE(flying->begin(absent));
  Get crooked{.block = 0, .into = {bytes + 7, 4096}};
  EXPECT_FALSE(flying->begin(crooked)) << "direct I/O needs aligned memory";
  auto plainly = open_store("file:" + folder.path(), {.use_io_uring = false});
  ASSERT_TRUE(plainly.has_value());
  EXPECT_FALSE((*plainly)->gets_in_flight(4));
}

TEST(FileStore, NothingRemainsAfterAKill) {
  TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto file = open_or_fail("file:" + folder.path());
    auto lmdb = open_or_fail((is_in_build("lmdb:") ? "lmdb:" : "file:") + folder.path());
    auto named = open_or_fail("file:" + folder.path() + "/named");
    (void)put_blocks(*named, 0, make_blocks(0, 100, 4096));
    (void)put_blocks(*file, 0, make_blocks(0, 100, 4096));
    (void)put_blocks(*lmdb, 0, make_blocks(0, 100, 4096));
    (void)!write(ready[1], "x", 1);
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_empty(folder.path()));
  close(ready[0]);
  close(ready[1]);
}

TEST(FileStore, KeptFilesAreForTheirOwnerOnly) {
  for (const mode_t mask : {0, 022, 0777}) {
    TemporaryFolder folder;
    const mode_t before = umask(mask);
    auto file = open_or_fail("file:" + folder.path() + "/blocks", kKept);
    auto lmdb = open_or_fail((is_in_build("lmdb:") ? "lmdb:" : "file:") + folder.path() + "/more", kKept);
    umask(before);
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      struct stat status{};
      ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 07777, 0600u) << entry.path() << " with umask " << mask;
      ++files;
    }
    EXPECT_EQ(files, 4);
  }
}

TEST(FileStore, AFileOfSomebodyElseIsNotTouched) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/letter";
  std::ofstream(path) << "dear reader";
  for (const auto& options : {StoreOptions{}, kKept}) {
    auto opened = open_store("file:" + path, options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
  }
  std::string text;
  std::getline(std::ifstream(path) >> std::ws, text);
  EXPECT_EQ(text, "dear reader");
}

TEST(FileStore, AnotherBlockSizeIsRefused) {
  TemporaryFolder folder;
  const std::string uri = "file:" + folder.path() + "/blocks";
  (void)open_or_fail(uri, kKept);
  auto other = open_store(uri, {.block_bytes = 8192, .lifetime = Lifetime::kKeep});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(other.error().message(), testing::HasSubstr("4096"));
}

TEST(FileStore, ADamagedTableIsRefused) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/blocks";
  (void)open_or_fail("file:" + path, kKept);
  std::fstream(path + ".versions", std::ios::in | std::ios::out | std::ios::binary) << "BROKEN";
  auto opened = open_store("file:" + path, kKept);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
}

class FileSpace : public testing::TestWithParam<StoreOptions> {};

TEST_P(FileSpace, ErasedBlocksGiveTheirSpaceBack) {
  TemporaryFolder folder;
  auto store = open_or_fail("file:" + folder.path() + "/blocks", GetParam());
  if (!has(store->capabilities(), Capability::kSparse))
    GTEST_SKIP() << "NO HOLES on the file system of " << folder.path();
  const std::size_t block_bytes = GetParam().block_bytes;
  const std::size_t count = 4 * base::kMiB / block_bytes;
  (void)put_blocks(*store, 0, make_blocks(0, count, block_bytes));
  ASSERT_TRUE(store->sync());
  const auto full = store->usage()->space_bytes;
  EXPECT_GE(full, 4 * base::kMiB);
  ASSERT_TRUE(store->erase(count / 4, count / 2));
  EXPECT_LE(store->usage()->space_bytes, full - 2 * base::kMiB + 64 * base::kKiB);
  EXPECT_EQ(expect_blocks(*store, 0, count / 4), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*store, count / 4 * 3, count / 4), Outcome::kOk);
  // One by one, as a pager drops pages: blocks smaller than a page make their hole when the last of it goes.
  for (std::size_t block = 0; block < count / 4; ++block) ASSERT_TRUE(store->erase(block, 1));
  EXPECT_LE(store->usage()->space_bytes, full - 3 * base::kMiB + 64 * base::kKiB);
  EXPECT_EQ(expect_blocks(*store, count / 4 * 3, count / 4), Outcome::kOk);
}

INSTANTIATE_TEST_SUITE_P(Sizes, FileSpace,
                         testing::Values(StoreOptions{}, StoreOptions{.block_bytes = 512},
                                         StoreOptions{.block_bytes = 512, .lifetime = Lifetime::kKeep}, kKept));

// Waiting for space would be waiting for ever.
TEST(FileStore, ALimitOnTheFilesSizeIsNamedAndIsNotAFullDisk) {
  TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto store = open_or_fail("file:" + folder.path());
    const auto bytes = make_blocks(0, 64, 4096);
    bool ok = put_blocks(*store, 0, bytes).outcome == Outcome::kOk;
    Put beyond{.block = 1000, .from = bytes};
    auto status = store->put({&beyond, 1});
    ok = ok && !status && status.error().code != ErrorCode::kNoSpace && beyond.outcome == Outcome::kFailed;
    ok = ok && status.error().message().find("ulimit -f") != std::string::npos;
    ok = ok && expect_blocks(*store, 0, 64) == Outcome::kOk && expect_blocks(*store, 1000, 1) == Outcome::kAbsent;
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// A file system of 4 MiB that fills up and empties again.
TEST(FileStore, AFullDiskIsNoSpaceAndPassesWhenThereIsRoomAgain) {
  TemporaryFolder folder;
  const std::string disk = folder.path() + "/disk";
  std::filesystem::create_directory(disk);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=4M") != 0) {
    std::cerr << "NOT TESTED: a full disk: mounting one needs root\n";
    GTEST_SKIP() << "mounting a small file system needs root";
  }
  for (const auto& options : {StoreOptions{}, kKept}) {
    auto store = open_or_fail("file:" + disk, options);
    const auto bytes = make_blocks(0, 256, 4096);
    Put first{.block = 0, .from = bytes};
    ASSERT_TRUE(store->put({&first, 1}));
    std::vector<Put> rest;
    for (std::uint64_t i = 1; i < 6; ++i) rest.push_back({.block = i * 256, .from = bytes});
    auto status = store->put(rest);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kNoSpace) << status.error().message();
    EXPECT_EQ(rest.back().outcome, Outcome::kNoSpace);
    EXPECT_EQ(expect_blocks(*store, 0, 256), Outcome::kOk);
    ASSERT_TRUE(store->erase(0, 256 * 6));
    rest.resize(1);
    EXPECT_TRUE(store->put(rest));
    store.reset();
    std::filesystem::remove(disk + "/farheap.store");
    std::filesystem::remove(disk + "/farheap.store.versions");
  }
  EXPECT_EQ(umount(disk.c_str()), 0);
}

// A writer is killed again and again; whatever is found afterwards was written whole, or its version is a new one.
TEST(FileStore, AKilledWriterLeavesNoLockAndNoFalseVersion) {
  TemporaryFolder folder;
  const std::string uri = "file:" + folder.path() + "/blocks";
  auto store = open_or_fail(uri, kKept);
  (void)put_blocks(*store, 0, Bytes(65536));
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      auto mine = open_or_fail(uri, kKept);
      for (unsigned i = 0;; ++i) (void)put_blocks(*mine, i % 16, Bytes(4096, static_cast<std::byte>(i % 251)));
    }
    usleep(3000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (std::uint64_t block = 0; block < 16; ++block) {
      Bytes into(4096);
      const auto got = get_blocks(*store, block, into);
      ASSERT_EQ(got.outcome, Outcome::kOk);
      EXPECT_EQ(into, Bytes(4096, into[0])) << "torn";
      EXPECT_EQ(put_blocks(*store, block, into, got.version).outcome, Outcome::kOk);
    }
  }
}

TEST(FileStore, DirectBlocksAreNotInThePageCache) {
  TemporaryFolder folder;
  auto store = open_or_fail("file:" + folder.path() + "/blocks", kKept);
  (void)put_blocks(*store, 0, make_blocks(0, 256, 4096));
  (void)expect_blocks(*store, 0, 256);
  const int file = open((folder.path() + "/blocks").c_str(), O_RDONLY | O_DIRECT);
  if (file < 0) {
    std::cerr << "NOT TESTED: direct I/O: the file system of " << folder.path() << " has none\n";
    GTEST_SKIP() << "no direct I/O here";
  }
  Bytes into(256 * 4096);
  iovec part{into.data(), into.size()};
  close(file);
  const int buffered = open((folder.path() + "/blocks").c_str(), O_RDONLY);
  // Only what is cached can be read without waiting.
  const ssize_t cached = preadv2(buffered, &part, 1, 0, RWF_NOWAIT);
  EXPECT_LE(cached, 0) << cached << " bytes were in the page cache";
  close(buffered);
}

}  // namespace
}  // namespace farheap::test
