// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions, readers, locks, and what users do wrong.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

class KeptHeapVersionsTest : public ::testing::Test {
 protected:
  HeapFolder folder;
};

TEST_F(KeptHeapVersionsTest, SnapshotsAreReadAndRemoved) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    int* const number = heap.construct<int>("number")(1);
    ASSERT_TRUE(heap.snapshot("monday"));
    *number = 2;
    ASSERT_TRUE(heap.snapshot("tuesday"));
    *number = 3;
    ASSERT_TRUE(heap.commit());
    EXPECT_EQ(heap.snapshot("monday").error().code, ErrorCode::kConflict);
    const auto versions = heap.versions().value();
    ASSERT_EQ(versions.size(), 3u);
    EXPECT_EQ(versions[0].name, "monday");
    EXPECT_EQ(versions[2].name, "");
    EXPECT_GT(versions[2].commit, versions[1].commit);
  }
  for (const auto& [name, value] : {std::pair{"@monday", 1}, {"@tuesday", 2}, {"", 3}}) {
    Heap heap = must(Heap::open_read_only(folder.uri() + name, kSmall));
    EXPECT_TRUE(heap.is_read_only());
    EXPECT_EQ(*heap.find<int>("number"), value) << name;
    EXPECT_FALSE(heap.commit());
  }
  {
    Heap heap = must(Heap::open(folder.uri(), kSmall));
    ASSERT_TRUE(heap.remove_snapshot("monday"));
    EXPECT_EQ(heap.remove_snapshot("monday").error().code, ErrorCode::kNotFound);
  }
  const auto gone = Heap::open_read_only(folder.uri() + "@monday", kSmall);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  EXPECT_NE(gone.error().message().find("tuesday"), std::string::npos) << gone.error().message();
}

// A program that opens its heap, changes all of it, commits once and ends, again and again.
TEST_F(KeptHeapVersionsTest, OneCommitAnOpeningDoesNotLetTheFileGrow) {
  constexpr std::size_t kWords = 1'000'000;
  struct stat file{};
  for (std::uint64_t run = 1; run <= 12; ++run) {
    Heap heap = must(Heap::open_or_create(folder.uri(), kSmall));
    auto* const words = heap.find_or_construct<std::uint64_t>("words")[kWords](0u);
    std::fill_n(words, kWords, run);
    ASSERT_TRUE(heap.commit());
    ASSERT_EQ(stat(folder.file().c_str(), &file), 0);
    ASSERT_LE(static_cast<std::uint64_t>(file.st_blocks) * 512, 4 * kWords * sizeof(std::uint64_t)) << "in run " << run;
  }
}

TEST_F(KeptHeapVersionsTest, RollBackReturnsToTheNewestSnapshot) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    heap.construct<int>("number")(1);
    ASSERT_TRUE(heap.snapshot("good"));
    *heap.find<int>("number") = 2;
    heap.construct<int>("other")(2);
    ASSERT_TRUE(heap.commit());
  }
  ASSERT_TRUE(Heap::roll_back(folder.uri()));
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  EXPECT_EQ(*heap.find<int>("number"), 1);
  EXPECT_EQ(heap.find<int>("other"), nullptr);
}

TEST_F(KeptHeapVersionsTest, OneMayWriteAndTheMessageNamesHim) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  const auto second = Heap::open(folder.uri(), kSmall);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message().find("process " + std::to_string(getpid())), std::string::npos)
      << second.error().message();
  EXPECT_EQ(Heap::remove(folder.uri()).error().code, ErrorCode::kConflict);
}

TEST_F(KeptHeapVersionsTest, ManyProcessesRead) {
  int ready[2], done[2];
  ASSERT_TRUE(pipe(ready) == 0 && pipe(done) == 0);
  const pid_t child = fork();  // before this process has threads, for the thread sanitizer's sake
  if (child == 0) {
    char word = 0;
    if (read(done[0], &word, 1) != 1) _exit(2);
    auto heap = Heap::open_read_only(folder.uri(), kSmall);
    const bool right = heap && *heap->find<int>("number") == 5;
    if (write(ready[1], "r", 1) != 1 || read(done[0], &word, 1) != 1) _exit(3);
    _exit(right ? 0 : 1);
  }
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    heap.construct<int>("number")(5);
    ASSERT_TRUE(heap.commit());
  }
  char word = 0;
  ASSERT_EQ(write(done[1], "g", 1), 1);
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  EXPECT_EQ(*must(Heap::open_read_only(folder.uri(), kSmall)).find<int>("number"), 5);
  const Status refused = Heap::remove(folder.uri());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  ASSERT_EQ(write(done[1], "e", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int end : {ready[0], ready[1], done[0], done[1]}) close(end);
  EXPECT_TRUE(Heap::remove(folder.uri()));
}

constexpr std::size_t kVersionNumbers = 4'000'000;  // 31 MiB: more than a reader may have in memory

// True if the version that is there now has one number everywhere, which is not below `least`, and has it again after
// everybody else has had time to commit. `between` is called after half of it was read.
template <class Between>
bool reads_one_state(const std::string& uri, std::uint64_t least, Between between) {
  auto heap = Heap::open_read_only(uri, {.memory = 16_MiB});
  if (!heap) {
    fprintf(stderr, "%s\n", heap.error().message().c_str());
    return false;
  }
  const auto [first, length] = heap->find_array<std::uint64_t>("numbers");
  if (first == nullptr || length != kVersionNumbers) return false;
  const std::uint64_t number = *first;
  const auto all_are = [&](std::size_t from, std::size_t to) {
    return std::all_of(first + from, first + to, [&](std::uint64_t one) { return one == number; });
  };
  if (number < least || !all_are(0, kVersionNumbers / 2)) return false;
  between();
  return all_are(kVersionNumbers / 2, kVersionNumbers) && all_are(0, kVersionNumbers / 2);
}

// The writer changes every page in every commit, opens the heap anew in between, and gives everything back that nobody
// needs: without a lease the reader's slots are written over.
TEST_F(KeptHeapVersionsTest, AReaderKeepsItsVersionWhileTheWriterCommits) {
  int to_reader[2], to_writer[2];
  ASSERT_TRUE(pipe(to_reader) == 0 && pipe(to_writer) == 0);
  const auto send = [](int end) { return write(end, "x", 1) == 1; };
  const auto wait = [](int end) {
    char word = 0;
    return read(end, &word, 1) == 1;
  };
  const pid_t child = fork();  // before this process has threads, for the thread sanitizer's sake
  if (child == 0) {
    if (!wait(to_reader[0])) _exit(2);
    bool told = true;
    const bool right = reads_one_state(folder.uri(), 1, [&] { told = send(to_writer[1]) && wait(to_reader[0]); });
    _exit(right && told ? 0 : 1);
  }
  std::uint64_t number = 0;
  const auto room = [&] {
    struct stat status{};
    return stat(folder.file().c_str(), &status) == 0 ? static_cast<std::uintmax_t>(status.st_blocks) * 512 : 0;
  };
  const auto commits = [&](int count) {
    Heap heap = must(Heap::open_or_create(folder.uri(), kSmall));
    auto* const numbers = heap.find_or_construct<std::uint64_t>("numbers")[kVersionNumbers](0U);
    for (int i = 0; i < count; ++i) {
      ++number;
      std::fill(numbers, numbers + kVersionNumbers, number);
      ASSERT_TRUE(heap.commit());
    }
  };
  commits(4);
  ASSERT_TRUE(send(to_reader[1]) && wait(to_writer[0]));
  commits(4);
  commits(4);
  ASSERT_TRUE(send(to_reader[1]));
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (const int end : {to_reader[0], to_reader[1], to_writer[0], to_writer[1]}) close(end);
  // Who does not read any more holds nothing: what was kept for it is used again.
  commits(6);
  const std::uintmax_t bytes = room();
  commits(6);
  EXPECT_LT(room(), bytes + (4U << 20));  // books, not pages
  EXPECT_TRUE(Heap::check(folder.uri()));
}

TEST_F(KeptHeapVersionsTest, ManyReadersBesideAWriterSeeWholeCommits) {
  constexpr int kReaders = 3;
  {
    must(Heap::create(folder.uri(), kSmall)).construct<std::uint64_t>("numbers")[kVersionNumbers](1U);
  }
  {
    Heap heap = must(Heap::open(folder.uri(), kSmall));
    if (heap.find<std::uint64_t>("numbers") == nullptr) heap.construct<std::uint64_t>("numbers")[kVersionNumbers](1U);
    ASSERT_TRUE(heap.commit());
  }
  std::vector<pid_t> children;
  for (int i = 0; i < kReaders; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const char* const program = "/proc/self/exe";
      setenv("FARHEAP_TEST_READ", folder.uri().c_str(), 1);
      execl(program, program, "--gtest_filter=ReaderProgram.Reads", nullptr);
      _exit(3);
    }
    children.push_back(child);
  }
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  auto* const numbers = heap.find<std::uint64_t>("numbers");
  int ended = 0;
  for (std::uint64_t number = 2; ended < kReaders; ++number) {
    std::fill(numbers, numbers + kVersionNumbers, number);
    ASSERT_TRUE(heap.commit());
    for (pid_t& child : children) {
      int status = 0;
      if (child == 0 || waitpid(child, &status, WNOHANG) != child) continue;
      EXPECT_EQ(status, 0);
      child = 0;
      ++ended;
    }
  }
}

// The program of the readers above.
TEST(ReaderProgram, Reads) {
  const char* const uri = getenv("FARHEAP_TEST_READ");
  if (uri == nullptr) return;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(reads_one_state(uri, 1, [] {}));
}

TEST_F(KeptHeapVersionsTest, WhoWritesToAVersionIsStoppedWithAMessage) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    heap.construct<int>("number")(5);
    ASSERT_TRUE(heap.commit());
  }
  const pid_t child = fork();
  if (child == 0) {
    const int out = open((folder.file("said")).c_str(), O_CREAT | O_WRONLY, 0600);
    dup2(out, 2);
    Heap heap = must(Heap::open_read_only(folder.uri(), kSmall));
    *heap.find<int>("number") = 6;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 74) << status;
  std::ifstream said(folder.file("said"));
  const std::string text((std::istreambuf_iterator<char>(said)), {});
  EXPECT_NE(text.find("opened for reading"), std::string::npos) << text;
}

TEST_F(KeptHeapVersionsTest, AForkedChildLeavesTheHeapToItsParent) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  int* const number = heap.construct<int>("number")(5);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !heap.commit();
    {
      const Heap gone = std::move(heap);
    }
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  *number = 6;
  EXPECT_TRUE(heap.commit());
  const auto second = Heap::open(folder.uri(), kSmall);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("process " + std::to_string(getpid())), std::string::npos)
      << second.error().message();
}

// A child that becomes another user could write to the heap's files, to its pages through the pager's userfaultfd, and
// into the queues of its rings.
TEST_F(KeptHeapVersionsTest, AForkedChildHasNothingOpenThatLeadsIntoTheHeap) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  heap.construct<int>("number")(5);
  ASSERT_TRUE(heap.commit());
  const auto leading = [&] {
    std::string found;
    for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code none;
      const std::string name = std::filesystem::read_symlink(one.path(), none);
      const bool leads = name.starts_with(folder.file()) && !name.ends_with(".lock");
      if (leads || name.find("[userfaultfd]") != name.npos || name.find("io_uring") != name.npos) found += name + "\n";
    }
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(folder.file()) != line.npos || line.find("io_uring") != line.npos) found += line + "\n";
    }
    return found;
  };
  EXPECT_NE(leading(), "");
  const pid_t child = fork();
  if (child == 0) {
    const std::string found = leading();
    std::cerr << found;
    _exit(found.empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(heap.commit());
}

// In a child, which ends with 0 if all is as expected.
int status_of_child(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(KeptHeapVersionsTest, AForkedChildReadsTheNewestCommitWhereThatIsAskedFor) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: a forked child makes threads, which ThreadSanitizer does not allow";
#endif
  HeapOptions options = kSmall;
  options.in_children = true;
  Heap heap = must(Heap::create(folder.uri(), options));
  int* const number = heap.construct<int>("number")(5);
  auto* const numbers = heap.construct<std::uint64_t>("numbers")[1'000'000](7u);
  ASSERT_TRUE(heap.commit());
  *number = 6;  // not committed: the child does not see it
  // From a thread of its own, which ends in the child before the child does, too.
  std::thread([&] {
    const auto read_all = [&] {
      bool right = *number == 5 && heap.find<int>("number") == number && heap.is_read_only() && !heap.commit();
      for (std::size_t i = 0; i < 1'000'000; ++i) right = right && numbers[i] == 7;
      right = right && heap.allocate(100) == nullptr && heap.statistics().objects == 2;
      // A child of the child has it as well.
      return right && status_of_child([&] { return *number == 5; }) == 0;
    };
    EXPECT_EQ(status_of_child(read_all), 0);
    EXPECT_EQ(status_of_child([&] {
                const Heap gone = std::move(heap);
                return true;
              }),
              0);
  }).join();
  // Who writes to it there is stopped, and the parent goes on.
  EXPECT_NE(status_of_child([&] {
              (void)freopen("/dev/null", "w", stderr);
              *const_cast<volatile int*>(number) = 9;
              return true;
            }),
            0);
  EXPECT_EQ(*number, 6);
  ASSERT_TRUE(heap.commit());
  EXPECT_EQ(status_of_child([&] { return *number == 6; }), 0);
}

TEST_F(KeptHeapVersionsTest, ANewCommitDoesNotDisturbAChildThatReads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: a forked child makes threads, which ThreadSanitizer does not allow";
#endif
  HeapOptions options = kSmall;
  options.in_children = true;
  Heap heap = must(Heap::create(folder.uri(), options));
  auto* const numbers = heap.construct<std::uint64_t>("numbers")[1'000'000](0u);
  ASSERT_TRUE(heap.commit());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char go;
    bool right = read(ends[0], &go, 1) == 1;
    for (std::size_t i = 0; i < 1'000'000; ++i) right = right && numbers[i] == 0;
    _exit(right ? 0 : 1);
  }
  for (std::uint64_t round = 1; round <= 3; ++round) {
    std::fill_n(numbers, 1'000'000, round);
    ASSERT_TRUE(heap.commit());
  }
  ASSERT_EQ(write(ends[1], "g", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(ends[0]);
  close(ends[1]);
}

// Nor may one that is only read be allocated from.
TEST_F(KeptHeapVersionsTest, AHeapThatIsReadGivesNoMemory) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    (void)heap.construct<int>("number")(5);
    ASSERT_TRUE(heap.commit());
  }
  Heap heap = must(Heap::open_read_only(folder.uri(), kSmall));
  EXPECT_EQ(heap.allocate(10), nullptr);
  EXPECT_EQ(heap.allocate(1_MiB), nullptr);
  EXPECT_EQ(heap.allocate(100, 4096), nullptr);
  EXPECT_THROW((void)heap.construct<int>("other")(6), ReadOnlyHeap);
  EXPECT_EQ(*heap.find<int>("number"), 5);
}

// open_or_create() once made a new heap over one whose bytes were all there.
TEST_F(KeptHeapVersionsTest, AHeapWhoseTableOfBlocksIsLostIsNotMadeAnew) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    heap.construct<int>("number")(7);
    ASSERT_TRUE(heap.commit());
  }
  ASSERT_EQ(truncate((folder.file() + ".versions").c_str(), 0), 0);
  for (const auto& opened : {Heap::open_or_create(folder.uri(), kSmall), Heap::create(folder.uri(), kSmall)}) {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(opened.error().message().find("--repair"), std::string::npos) << opened.error().message();
  }
  const auto repaired = Heap::repair(folder.uri());
  ASSERT_TRUE(repaired) << repaired.error().message();
  EXPECT_EQ(*must(Heap::open(folder.uri(), kSmall)).find<int>("number"), 7);
}

// It was a SIGBUS.
TEST_F(KeptHeapVersionsTest, ATableOfBlocksThatWasCutOffIsAnError) {
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
    heap.construct<int>("number")(7);
    ASSERT_TRUE(heap.commit());
  }
  ASSERT_EQ(truncate((folder.file() + ".versions").c_str(), 65'536), 0);
  const auto opened = Heap::open(folder.uri(), kSmall);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
  ASSERT_TRUE(Heap::repair(folder.uri()));
  EXPECT_EQ(*must(Heap::open(folder.uri(), kSmall)).find<int>("number"), 7);
}

// Two writers once got in, one by each name.
TEST_F(KeptHeapVersionsTest, AHeapHasOneLockWhateverLinkLeadsToIt) {
  const Heap heap = must(Heap::create(folder.uri(), kSmall));
  for (const char* end : {"", ".versions"}) {
    ASSERT_EQ(symlink((folder.file() + end).c_str(), (folder.file("link") + end).c_str()), 0);
  }
  const auto second = Heap::open(folder.uri("link"), kSmall);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message().find("open for writing by"), std::string::npos) << second.error().message();
}

// It waited for ever.
TEST_F(KeptHeapVersionsTest, ACommitOfAThreadThatPausesIsRefused) {
  Heap heap = must(Heap::create(folder.uri(), kSmall));
  {
    const auto pause = heap.pause();
    EXPECT_EQ(heap.commit().error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_TRUE(heap.commit());
}

// What a commit had written before its program was killed stayed on the disk, whatever was done.
TEST_F(KeptHeapVersionsTest, CompactGivesBackWhatAKilledCommitWrote) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "SKIPPED, NOT TESTED: a forked child makes threads, which ThreadSanitizer does not allow";
#endif
  {
    (void)must(Heap::create(folder.uri(), kSmall));
  }
  const pid_t child = fork();
  if (child == 0) {
    Heap heap = must(Heap::open(folder.uri(), kSmall));
    std::memset(heap.allocate(200_MiB), 1, 200_MiB);  // more than fits in memory: most of it is written
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const auto bytes = [&] {
    struct stat found{};
    stat(folder.file().c_str(), &found);
    return static_cast<std::uint64_t>(found.st_blocks) * 512;
  };
  const std::uint64_t before = bytes();
  ASSERT_GT(before, 100_MiB);
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  ASSERT_TRUE(heap.compact());
  EXPECT_LT(bytes(), before / 2);
  EXPECT_LT(bytes(), 100_MiB);
}

TEST_F(KeptHeapVersionsTest, MistakesGetASentence) {
  EXPECT_EQ(Heap::open(folder.uri(), kSmall).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder.file()));
  EXPECT_EQ(Heap::create("mem:", kSmall).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Heap::create("graph", kSmall).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Heap::create(folder.uri(), {.memory = 1_MiB}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Heap::create(folder.uri(), {.memory = 32_MiB, .capacity = 5_MiB}).error().code,
            ErrorCode::kInvalidArgument);
  (void)must(Heap::create(folder.uri(), kSmall));
  EXPECT_EQ(Heap::create(folder.uri(), kSmall).error().code, ErrorCode::kConflict);
  std::ofstream(folder.file("else")) << "something else";
  EXPECT_FALSE(Heap::open(folder.uri("else"), kSmall));
  EXPECT_FALSE(Heap::remove(folder.uri("else")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("else")));
  EXPECT_TRUE(Heap::remove(folder.uri()));
  EXPECT_FALSE(std::filesystem::exists(folder.file()));
}

TEST_F(KeptHeapVersionsTest, ItLivesInLmdbAndBehindDecorators) {
  for (const std::string& uri : {"lmdb:" + folder.file("l"), "checksum+file:" + folder.file("c")}) {
    {
      Heap heap = must(Heap::create(uri, kSmall));
      heap.construct<int>("number")[100'000](5);
      ASSERT_TRUE(heap.commit()) << uri;
    }
    {
      Heap heap = must(Heap::open(uri, kSmall));
      EXPECT_EQ(heap.find_array<int>("number").first[99'999], 5);
    }
    EXPECT_TRUE(Heap::check(uri)) << Heap::check(uri).error().message();
    EXPECT_TRUE(Heap::remove(uri));
  }
}

}  // namespace
}  // namespace farheap::testing
