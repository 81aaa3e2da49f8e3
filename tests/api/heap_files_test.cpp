// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files of a heap: what somebody else has put in their place, links to them, names of any kind, and what is left of
// a heap that is none.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/api/heap_folder.hpp"

namespace farheap::testing {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kStranger = 65534;

class HeapFilesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string at(const std::string& name) const { return folder_.file(name); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name)) << text;
    return at(name);
  }
  void make_heap(const std::string& name = "heap") const {
    Heap heap = must(Heap::create(file_uri(at(name)), kSmall));
    *heap.construct<int>("answer")() = 42;
    ASSERT_TRUE(heap.commit());
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& one : fs::directory_iterator(fs::path(at("x")).parent_path())) {
      all.push_back(one.path().filename().string());
    }
    std::ranges::sort(all);
    return all;
  }
  static void expect_in(const std::string& part, const Error& error) {
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }

  HeapFolder folder_;
};

using Names = std::vector<std::string>;

// ---- what somebody has put there

TEST_F(HeapFilesTest, APlantedLinkDoesNotCutWhatItLeadsTo) {
  write("victim", "secret");
  for (const char* const planted : {"heap.lock", "heap.versions"}) {
    fs::create_symlink(at("victim"), at(planted));
    EXPECT_FALSE(Heap::create(folder_.uri(), kSmall)) << planted;
    EXPECT_FALSE(Heap::open_or_create(folder_.uri(), kSmall)) << planted;
    EXPECT_EQ(text_of(at("victim")), "secret") << planted;
    fs::remove(at(planted));
    fs::remove(at("heap.lock"));
  }
  fs::create_symlink(at("victim"), at("heap-lock"));
  EXPECT_FALSE(Heap::create("lmdb:" + at("heap"), kSmall));
  EXPECT_EQ(text_of(at("victim")), "secret");
}

TEST_F(HeapFilesTest, EmptyFilesOfSomebodyElseDoNotBecomeAHeap) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  for (const mode_t mode : {0666U, 0600U}) {
    for (const char* const name : {"heap", "heap.versions"}) {
      ASSERT_EQ(chown(write(name, "").c_str(), kStranger, kStranger), 0);
      ASSERT_EQ(chmod(at(name).c_str(), mode), 0);
    }
    const auto made = Heap::create(folder_.uri(), kSmall);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kPermission);
    EXPECT_FALSE(Heap::open_or_create(folder_.uri(), kSmall));
    EXPECT_FALSE(open_store(folder_.uri(), {.lifetime = Lifetime::kKeep}));
    EXPECT_EQ(names(), (Names{"heap", "heap.versions"}));
    EXPECT_EQ(fs::file_size(at("heap")), 0U);
    EXPECT_EQ(fs::file_size(at("heap.versions")), 0U);
  }
}

TEST_F(HeapFilesTest, AHeapOfSomebodyElseIsNotOpenedForWriting) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  make_heap();
  for (const char* const name : {"heap", "heap.versions", "heap.lock"}) {
    ASSERT_EQ(chown(at(name).c_str(), kStranger, kStranger), 0);
  }
  const auto opened = Heap::open(folder_.uri(), kSmall);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kPermission);
  EXPECT_FALSE(Heap::remove(folder_.uri()));
  EXPECT_TRUE(fs::exists(at("heap")));
  fs::remove(at("heap.versions"));
  EXPECT_FALSE(Heap::repair(folder_.uri())) << "it would become this user's";
}

TEST_F(HeapFilesTest, AHeapOfSomebodyElseIsReadAndNotChanged) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  make_heap();
  for (const char* const name : {"heap", "heap.versions", "heap.lock"}) {
    ASSERT_EQ(chown(at(name).c_str(), kStranger, kStranger), 0);
  }
  const std::string table = text_of(at("heap.versions")), lock = text_of(at("heap.lock"));
  {
    const Heap heap = must(Heap::open_read_only(folder_.uri(), kSmall));
    EXPECT_EQ(*heap.find<int>("answer"), 42);
    EXPECT_EQ(Heap::look(folder_.uri())->objects.size(), 1U);
  }
  EXPECT_EQ(text_of(at("heap.versions")), table);
  EXPECT_EQ(text_of(at("heap.lock")), lock);
  EXPECT_FALSE(open_store(folder_.uri(), {.lifetime = Lifetime::kKeep}));
  auto store = open_store(folder_.uri() + "?read_only=yes", {.lifetime = Lifetime::kKeep});
  ASSERT_TRUE(store);
  const std::vector<std::byte> page(4096);
  Put put{.block = 100, .from = page};
  EXPECT_FALSE((*store)->put({&put, 1}));
  EXPECT_FALSE((*store)->erase(0, 1));
  EXPECT_FALSE((*store)->add("counter", 1));
  EXPECT_EQ(text_of(at("heap.versions")), table);
}

TEST_F(HeapFilesTest, WhoMayOnlyReadTheFilesReadsTheHeap) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  make_heap();
  ASSERT_EQ(chmod(fs::path(at("heap")).parent_path().c_str(), 0755), 0);
  for (const char* const name : {"heap", "heap.versions", "heap.lock"}) ASSERT_EQ(chmod(at(name).c_str(), 0644), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setresgid(kStranger, kStranger, kStranger) != 0 || setresuid(kStranger, kStranger, kStranger) != 0) _exit(9);
    const auto facts = Heap::look(folder_.uri());
    if (!facts) std::fprintf(stderr, "%s\n", facts.error().message().c_str());
    const auto writes = Heap::roll_back(folder_.uri());
    _exit(facts && facts->objects.size() == 1 && !writes && writes.error().code == ErrorCode::kPermission ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(HeapFilesTest, FilesWithTwoNamesAreNotWritten) {
  make_heap("other");
  fs::create_hard_link(at("other"), at("heap"));
  fs::create_hard_link(at("other.versions"), at("heap.versions"));
  const auto opened = Heap::open(folder_.uri(), kSmall);
  ASSERT_FALSE(opened) << "two processes could write it, each with a lock of its own";
  expect_in("hard links", opened.error());
  fs::remove(at("heap")), fs::remove(at("heap.versions"));
  write("victim", "'text' that looks like (process 1 on a machine)");
  fs::create_hard_link(at("victim"), at("new.lock"));
  EXPECT_FALSE(Heap::create(folder_.uri("new"), kSmall));
  EXPECT_EQ(text_of(at("victim")), "'text' that looks like (process 1 on a machine)");
}

TEST_F(HeapFilesTest, ALockFileOfAnotherKindIsNotCut) {
  write("heap.lock", "my notes");
  const auto made = Heap::create(folder_.uri(), kSmall);
  ASSERT_FALSE(made);
  expect_in("not a lock file of Farheap", made.error());
  EXPECT_EQ(text_of(at("heap.lock")), "my notes");
  write("heap-lock", "my notes");
  EXPECT_FALSE(Heap::create("lmdb:" + at("other") + "/../heap", kSmall));
  EXPECT_EQ(text_of(at("heap-lock")), "my notes");
}

TEST_F(HeapFilesTest, LockFilesOfEarlierVersionsAreAccepted) {
  make_heap();
  for (const char* const text : {"", "'words' (process 12 on somewhere) since 2025-01-01 00:00:00 UTC"}) {
    write("heap.lock", text);
    EXPECT_TRUE(Heap::open(folder_.uri(), kSmall)) << text;
    EXPECT_EQ(text_of(at("heap.lock")), "farheap lock 1\n");
  }
}

TEST_F(HeapFilesTest, AFolderThatAllMayWriteToIsUsableByItsUser) {
  ASSERT_EQ(mkdir(at("tmp").c_str(), 0700), 0);
  ASSERT_EQ(chmod(at("tmp").c_str(), 01777), 0);
  make_heap("tmp/heap");
  EXPECT_TRUE(Heap::open(folder_.uri("tmp/heap"), kSmall));
}

// ---- symbolic links

TEST_F(HeapFilesTest, ALinkToTheFileOpensTheHeap) {
  ASSERT_EQ(mkdir(at("data").c_str(), 0700), 0);
  make_heap("data/heap");
  fs::create_symlink("data/heap", at("link"));
  fs::create_symlink(at("link"), at("link to it"));
  for (const char* const name : {"link", "link to it"}) {
    Heap heap = must(Heap::open(folder_.uri(name), kSmall));
    EXPECT_EQ(*heap.find<int>("answer"), 42);
    EXPECT_TRUE(Heap::has_writer(folder_.uri("data/heap")).value()) << "it has one lock, whatever its name";
    EXPECT_TRUE(Heap::look(folder_.uri(name)));
  }
  EXPECT_TRUE(Heap::check(folder_.uri("link")));
  EXPECT_TRUE(is_store_there(folder_.uri("link")).value());
  EXPECT_EQ(names(), (Names{"data", "link", "link to it"})) << "nothing is made beside a link";
  ASSERT_TRUE(Heap::remove(folder_.uri("link")));
  EXPECT_FALSE(fs::exists(at("data/heap")));
  EXPECT_FALSE(fs::exists(at("data/heap.versions")));
}

TEST_F(HeapFilesTest, ALinkToAnLmdbFileOpensTheHeap) {
  ASSERT_EQ(mkdir(at("data").c_str(), 0700), 0);
  must(Heap::create("lmdb:" + at("data/heap"), kSmall));
  fs::create_symlink("data/heap", at("link"));
  EXPECT_TRUE(Heap::open("lmdb:" + at("link"), kSmall));
  EXPECT_EQ(names(), (Names{"data", "link"}));
}

TEST_F(HeapFilesTest, ALinkOfAStrangerIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  make_heap();
  fs::create_symlink(at("heap"), at("link"));
  ASSERT_EQ(lchown(at("link").c_str(), kStranger, kStranger), 0);
  const auto opened = Heap::open_read_only(folder_.uri("link"), kSmall);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kPermission);
}

// ---- what is no heap

TEST_F(HeapFilesTest, AnEmptyFileIsNotRemovedAsAHeap) {
  write("heap", "");
  EXPECT_FALSE(Heap::remove(folder_.uri()));
  EXPECT_EQ(names(), Names{"heap"});
}

TEST_F(HeapFilesTest, AStoreThatIsNoHeapIsNotRemovedAsOne) {
  {
    auto store = open_store(folder_.uri(), {.lifetime = Lifetime::kKeep});
    ASSERT_TRUE(store);
    const std::vector<std::byte> page(4096, std::byte{7});
    Put put{.block = 100, .from = page};
    ASSERT_TRUE((*store)->put({&put, 1}));
  }
  EXPECT_FALSE(Heap::remove(folder_.uri()));
  EXPECT_TRUE(is_store_there(folder_.uri()).value());
}

TEST_F(HeapFilesTest, NothingIsMadeBesideATextFile) {
  write("text", "some words");
  EXPECT_FALSE(Heap::look(folder_.uri("text")));
  EXPECT_FALSE(Heap::open(folder_.uri("text"), kSmall));
  EXPECT_FALSE(Heap::open_read_only(folder_.uri("text"), kSmall));
  EXPECT_FALSE(Heap::create(folder_.uri("text"), kSmall));
  EXPECT_FALSE(Heap::roll_back(folder_.uri("text")));
  EXPECT_FALSE(Heap::check(folder_.uri("text")));
  EXPECT_FALSE(Heap::remove(folder_.uri("text")));
  EXPECT_FALSE(Heap::look("lmdb:" + at("text")));
  EXPECT_EQ(names(), Names{"text"});
}

TEST_F(HeapFilesTest, AFailedCreateLeavesNoneOfItsFiles) {
  EXPECT_FALSE(Heap::create(folder_.uri(), {.memory = 32_MiB, .capacity = 3_MiB}));
  EXPECT_FALSE(Heap::create("lmdb:" + at("heap"), {.memory = 32_MiB, .capacity = 3_MiB}));
  EXPECT_EQ(names(), Names{});
  make_heap();
  const Names before = names();
  const auto again = Heap::create(folder_.uri(), {.memory = 32_MiB, .capacity = 3_MiB});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_EQ(names(), before) << "what was there before stays";
  EXPECT_TRUE(Heap::open(folder_.uri(), kSmall));
}

// ---- what messages say

TEST_F(HeapFilesTest, AMissingTableIsNamedWithWhatMakesItAnew) {
  make_heap();
  fs::remove(at("heap.versions"));
  for (const auto& opened : {Heap::open(folder_.uri(), kSmall), Heap::create(folder_.uri(), kSmall)}) {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    expect_in("heap.versions, the table of its blocks, is missing", opened.error());
    expect_in("farheap heap check --repair", opened.error());
  }
  const auto repaired = Heap::repair(folder_.uri());
  ASSERT_TRUE(repaired) << repaired.error().message();
  EXPECT_EQ(*must(Heap::open(folder_.uri(), kSmall)).find<int>("answer"), 42);
}

// It was told as "cut off behind our back".
TEST_F(HeapFilesTest, AMissingFileWhoseTableIsLeftIsNamed) {
  make_heap();
  fs::rename(at("heap"), at("moved"));
  const Names before = names();
  const auto expect_told = [&](const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::kCorrupt);
    expect_in(at("heap") + " is missing, with all the data", error);
    expect_in("what is left is " + at("heap.versions"), error);
    expect_in("bring " + at("heap") + " back", error);
    expect_in("rm " + at("heap.versions"), error);
  };
  for (const auto& opened :
       {Heap::open(folder_.uri(), kSmall), Heap::create(folder_.uri(), kSmall), Heap::open_read_only(folder_.uri())}) {
    ASSERT_FALSE(opened);
    expect_told(opened.error());
  }
  expect_told(Heap::look(folder_.uri()).error());
  expect_told(Heap::check(folder_.uri()).error());
  expect_told(Heap::repair(folder_.uri()).error());
  expect_told(Heap::remove(folder_.uri()).error());
  expect_told(Heap::copy(folder_.uri(), folder_.uri("other")).error());
  expect_told(open_store(folder_.uri(), {.lifetime = Lifetime::kKeep}).error());
  EXPECT_EQ(names(), before) << "nothing is made, and nothing goes";
  // Both ways out that are told.
  fs::rename(at("moved"), at("heap"));
  EXPECT_EQ(*must(Heap::open(folder_.uri(), kSmall)).find<int>("answer"), 42);
  fs::remove(at("heap")), fs::remove(at("heap.versions"));
  EXPECT_TRUE(Heap::create(folder_.uri(), kSmall));
}

TEST_F(HeapFilesTest, ARepairThatWasKilledBetweenTwoNamesIsMadeAgain) {
  make_heap();
  fs::copy_file(at("heap.versions"), at("heap.repaired.versions"));
  fs::remove(at("heap.versions"));
  const auto repaired = Heap::repair(folder_.uri());
  ASSERT_TRUE(repaired) << repaired.error().message();
  EXPECT_EQ(*must(Heap::open(folder_.uri(), kSmall)).find<int>("answer"), 42);
}

TEST_F(HeapFilesTest, ACommitWithoutRoomTellsWhatStands) {
  Heap heap = must(Heap::create("faulty+file:" + at("heap") + "?full_after=8M", kSmall));
  *heap.construct<int>("answer")() = 42;
  ASSERT_TRUE(heap.commit());
  constexpr std::size_t kBytes = 16 << 20;
  std::memset(heap.allocate(kBytes), 1, kBytes);
  const Status full = heap.commit();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(full.error().what, "cannot commit");
  expect_in("commit " + std::to_string(heap.last_commit()) + " is whole and stays the newest", full.error());
  expect_in("make room, and commit again", full.error());
  expect_in("`df " + fs::canonical(at("heap")).parent_path().string() + "` shows what there is", full.error());
}

// They said which block was not written, and nothing of what to do.
TEST_F(HeapFilesTest, AHeapThatIsMadeOrCopiedWithoutRoomTellsWhatToDo) {
  const std::string df = "`df " + fs::canonical(fs::path(at("x")).parent_path()).string() + "` shows what there is";
  const auto expect_told = [&](const Error& error, const std::string& what, const std::string& again) {
    EXPECT_EQ(error.code, ErrorCode::kNoSpace);
    EXPECT_EQ(error.what, what);
    expect_in("there is no room in its store", error);
    expect_in("nothing of the new heap is left", error);
    EXPECT_EQ(error.remedy, "make room, and " + again + "; " + df);
  };
  const auto made = Heap::create("faulty+file:" + at("heap") + "?full_after=4K", kSmall);
  ASSERT_FALSE(made);
  expect_told(made.error(), "cannot create the heap", "create it again");
  EXPECT_EQ(names(), Names{});
  make_heap();
  const Status copied = Heap::copy(folder_.uri(), "faulty+file:" + at("other") + "?full_after=8K");
  ASSERT_FALSE(copied);
  expect_told(copied.error(), "cannot copy the heap", "copy it again");
  EXPECT_EQ(names(), (Names{"heap", "heap.lock", "heap.versions"}));
}

TEST_F(HeapFilesTest, AnAtSignInANewHeapsNameIsExplained) {
  const auto made = Heap::create(folder_.uri("me@home"), kSmall);
  ASSERT_FALSE(made);
  expect_in("'home'", made.error());
  expect_in("%40", made.error());
  make_heap("me@home");
  EXPECT_EQ(names(), (Names{"me@home", "me@home.lock", "me@home.versions"}));
}

TEST_F(HeapFilesTest, ALockFileOfSomebodyElseIsNamedWithItsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  make_heap();
  ASSERT_EQ(chmod(fs::path(at("heap")).parent_path().c_str(), 0755), 0);
  for (const char* const name : {"heap", "heap.versions"}) ASSERT_EQ(chmod(at(name).c_str(), 0644), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setresgid(kStranger, kStranger, kStranger) != 0 || setresuid(kStranger, kStranger, kStranger) != 0) _exit(9);
    const auto facts = Heap::look(folder_.uri());
    const std::string message = facts ? "it was read" : facts.error().message();
    const bool good = message.find("heap.lock") != message.npos && message.find("user 0") != message.npos &&
                      message.find("mode 0600") != message.npos && message.find("chmod go+r") != message.npos;
    if (!good) std::fprintf(stderr, "%s\n", message.c_str());
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// ---- names of any kind

TEST_F(HeapFilesTest, APathOfAnyNameIsAUri) {
  for (const char* const name : {"what?now", "100%", "%41", "me@home", "a#b", "a,sync=b", "a&b=c", "two words"}) {
    ASSERT_EQ(mkdir(at(name).c_str(), 0700), 0);
    const std::string file = std::string(name) + "/" + name;
    make_heap(file);
    EXPECT_TRUE(fs::exists(at(file))) << name;
    EXPECT_EQ(*must(Heap::open_read_only(file_uri(at(file)), kSmall)).find<int>("answer"), 42) << name;
    EXPECT_EQ(Heap::look(file_uri(at(file)))->uri, file_uri(at(file)));
    const auto listed = list_stores(file_uri(at(name)));
    ASSERT_TRUE(listed && listed->size() == 1) << name;
    EXPECT_EQ(listed->front().uri, file_uri(at(file)));
    EXPECT_TRUE(Heap::copy(file_uri(at(file)), file_uri(at(file) + ".copy"))) << name;
    fs::create_symlink(at(file), at(std::string(name) + " link"));
    EXPECT_TRUE(Heap::open(file_uri(at(std::string(name) + " link")), kSmall)) << name;
    EXPECT_TRUE(Heap::remove(file_uri(at(file)))) << name;
  }
}

TEST_F(HeapFilesTest, APercentThatIsNoEscapeStandsForItself) {
  make_heap("50%off");
  EXPECT_TRUE(Heap::look("file:" + at("50%off")));
  EXPECT_TRUE(Heap::look("file:" + at("50%25off")));
}

}  // namespace
}  // namespace farheap::testing
