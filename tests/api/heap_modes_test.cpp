// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heaps that others may read: the mode of a new heap's files, and readers who may write none of them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <farheap/heap_facts.hpp>
#include <functional>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

constexpr uid_t kNobody = 65534;

// What a child of another user returns; 99 if it could not become one.
int as_nobody(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    if (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0) _exit(99);
    _exit(act());
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

class HeapModesTest : public ::testing::Test {
 protected:
  void SetUp() override { before_ = umask(022); }
  void TearDown() override { umask(before_); }
  HeapFolder folder;

 private:
  mode_t before_ = 0;
};

TEST_F(HeapModesTest, TheFilesOfANewHeapHaveTheModeThatWasAskedForLessTheUmask) {
  for (const auto& [wanted, there] : {std::pair{0600u, 0600u}, {0640u, 0640u}, {0664u, 0644u}, {0u, 0600u}}) {
    HeapFolder place;
    HeapOptions options = kSmall;
    options.mode = wanted;
    (void)must(Heap::create(place.uri(), options));
    for (const char* part : {"", ".versions", ".lock"})
      EXPECT_EQ(mode_of(place.file() + part), there) << part << wanted;
  }
}

TEST_F(HeapModesTest, WhoMayOnlyReadTheFilesReadsTheHeapBesideItsWriter) {
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED, NOT TESTED: only root becomes another user";
  HeapOptions options = kSmall;
  options.mode = 0644;
  ASSERT_EQ(chmod(folder.file("").c_str(), 0755), 0);
  {
    Heap heap = must(Heap::create(folder.uri(), options));
    (void)heap.construct<int>("one")(1);
    ASSERT_TRUE(heap.commit());
  }
  const auto looks = [&] {
    const auto facts = Heap::look(folder.uri());
    return facts && facts->objects.size() == 1 && facts->objects[0].name == "one" ? 0 : 1;
  };
  EXPECT_EQ(as_nobody(looks), 0);
  EXPECT_EQ(as_nobody([&] { return Heap::check(folder.uri()) ? 0 : 1; }), 0);
  // To write it is refused, before anything was tried.
  EXPECT_EQ(as_nobody([&] {
              const auto opened = Heap::open(folder.uri(), kSmall);
              return !opened && opened.error().code == ErrorCode::kPermission ? 0 : 1;
            }),
            0);
  Heap heap = must(Heap::open(folder.uri(), kSmall));
  *heap.find<int>("one") = 2;
  ASSERT_TRUE(heap.commit());
  EXPECT_EQ(as_nobody(looks), 0) << "while somebody writes";
  *heap.find<int>("one") = 3;
  EXPECT_TRUE(heap.commit()) << "a reader is in nobody's way";
}

TEST_F(HeapModesTest, WithoutThatNobodyElseReadsIt) {
  if (geteuid() != 0) GTEST_SKIP() << "SKIPPED, NOT TESTED: only root becomes another user";
  ASSERT_EQ(chmod(folder.file("").c_str(), 0755), 0);
  {
    Heap heap = must(Heap::create(folder.uri(), kSmall));
  }
  EXPECT_EQ(as_nobody([&] {
              const auto facts = Heap::look(folder.uri());
              return !facts && facts.error().code == ErrorCode::kPermission ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace farheap::testing
