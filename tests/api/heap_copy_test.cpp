// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heaps are copied: between stores, with their snapshots, beside a writer, whole or not at all.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

constexpr std::size_t kCopied = 1'000'000;

// Snapshots "one" and "two", and the newest state: all numbers are 1, 2 and 3.
void make_three_versions(const std::string& uri) {
  Heap heap = must(Heap::create(uri, kSmall));
  auto* const numbers = heap.construct<std::uint64_t>("numbers")[kCopied](1U);
  ASSERT_TRUE(heap.snapshot("one"));
  std::fill(numbers, numbers + kCopied, 2);
  heap.construct<int>("second")(2);
  ASSERT_TRUE(heap.snapshot("two"));
  std::fill(numbers, numbers + kCopied, 3);
  ASSERT_TRUE(heap.commit());
}

// 0: the numbers are not all alike.
std::uint64_t number_in(const std::string& uri) {
  const Heap heap = must(Heap::open_read_only(uri, kSmall));
  const auto [first, length] = heap.find_array<std::uint64_t>("numbers");
  const bool alike = length == kCopied && std::all_of(first, first + length, [&](auto one) { return one == *first; });
  return alike ? *first : 0;
}

struct Facts {
  std::string id;
  const void* address;
  std::vector<VersionInfo> versions;
};
Facts facts_of(const std::string& uri) {
  Heap heap = must(Heap::open_read_only(uri, kSmall));
  return {heap.id(), heap.find_array<std::uint64_t>("numbers").first, heap.versions().value()};
}

std::string message(const Status& status) { return status ? "" : status.error().message(); }

class HeapCopyTest : public ::testing::Test {
 protected:
  void expect_no_files(const std::string& name) const {
    for (const auto& one : std::filesystem::directory_iterator(std::filesystem::path(folder.file()).parent_path())) {
      EXPECT_FALSE(one.path().filename().string().starts_with(name)) << one.path();
    }
  }
  HeapFolder folder;
};

TEST_F(HeapCopyTest, HasAllVersionsInAnyStore) {
  make_three_versions(folder.uri());
  const Facts was = facts_of(folder.uri());
  std::set<std::string> ids{was.id};
  for (const std::string& to : {folder.uri("copy"), "lmdb:" + folder.file("l"), "checksum+file:" + folder.file("c")}) {
    ASSERT_EQ(message(Heap::copy(folder.uri(), to)), "") << to;
    ASSERT_EQ(message(Heap::check(to)), "") << to;
    EXPECT_EQ(number_in(to + "@one"), 1U) << to;
    EXPECT_EQ(number_in(to + "@two"), 2U) << to;
    EXPECT_EQ(number_in(to), 3U) << to;
    const Facts is = facts_of(to);
    EXPECT_TRUE(ids.insert(is.id).second) << "the id is not new";
    EXPECT_EQ(is.address, was.address);
    ASSERT_EQ(is.versions.size(), was.versions.size());
    for (std::size_t i = 0; i < is.versions.size(); ++i) {
      EXPECT_EQ(is.versions[i].name, was.versions[i].name);
      EXPECT_EQ(is.versions[i].commit, was.versions[i].commit);
      EXPECT_EQ(is.versions[i].time_ns, was.versions[i].time_ns);
      EXPECT_EQ(is.versions[i].pages, was.versions[i].pages);
    }
    // And it goes on like any heap.
    Heap heap = must(Heap::open(to, kSmall));
    heap.construct<int>("third")(3);
    ASSERT_TRUE(heap.remove_snapshot("one"));
    ASSERT_TRUE(heap.commit());
  }
  ASSERT_EQ(message(Heap::copy("lmdb:" + folder.file("l"), folder.uri("back"))), "");
  EXPECT_EQ(message(Heap::check(folder.uri("back"))), "");
  EXPECT_EQ(number_in(folder.uri("back")), 3U);
}

TEST_F(HeapCopyTest, AFolderOfLmdbKeepsItsNameWhenItsHeapGoes) {
  make_three_versions(folder.uri());
  for (const std::string name : {"d", "e"}) {
    std::filesystem::create_directory(folder.file(name));
    const std::string uri = (name == "d" ? "lmdb:" : "file:") + folder.file(name);
    ASSERT_EQ(message(Heap::copy(folder.uri() + "@two", uri)), "");
    EXPECT_EQ(number_in(uri), 2U);
    ASSERT_EQ(message(Heap::remove(uri)), "");
    EXPECT_TRUE(std::filesystem::is_empty(folder.file(name)));
  }
}

TEST_F(HeapCopyTest, OneVersionIsCopiedAlone) {
  make_three_versions(folder.uri());
  ASSERT_EQ(message(Heap::copy(folder.uri() + "@one", folder.uri("past"))), "");
  EXPECT_EQ(number_in(folder.uri("past")), 1U);
  EXPECT_EQ(facts_of(folder.uri("past")).versions.size(), 1U);
  EXPECT_EQ(facts_of(folder.uri("past")).versions[0].commit, facts_of(folder.uri()).versions[0].commit);
  EXPECT_EQ(must(Heap::open(folder.uri("past"), kSmall)).find<int>("second"), nullptr);
  EXPECT_EQ(message(Heap::check(folder.uri("past"))), "");
  ASSERT_EQ(message(Heap::copy(folder.uri(), folder.uri("new"), {.newest_only = true})), "");
  EXPECT_EQ(number_in(folder.uri("new")), 3U);
  EXPECT_EQ(facts_of(folder.uri("new")).versions.size(), 1U);
  EXPECT_EQ(message(Heap::check(folder.uri("new"))), "");
}

TEST_F(HeapCopyTest, ProgressRisesToTheEnd) {
  make_three_versions(folder.uri());
  std::uint64_t last = 0, all = 0, calls = 0;
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
    all = total;
    ++calls;
  };
  ASSERT_TRUE(Heap::copy(folder.uri(), folder.uri("copy"), {.share_bytes = false, .progress = progress}));
  EXPECT_GT(calls, 5U);
  EXPECT_EQ(last, all);
  EXPECT_GT(all, 3 * kCopied * sizeof(std::uint64_t));
}

TEST_F(HeapCopyTest, MistakesGetASentenceAndLeaveNothing) {
  EXPECT_EQ(Heap::copy(folder.uri(), folder.uri("copy")).error().code, ErrorCode::kNotFound);
  make_three_versions(folder.uri());
  EXPECT_EQ(Heap::copy(folder.uri() + "@three", folder.uri("copy")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Heap::copy(folder.uri(), folder.uri("copy") + "@one").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Heap::copy(folder.uri(), "mem:").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Heap::copy(folder.uri(), folder.uri()).error().code, ErrorCode::kConflict);
  expect_no_files("copy");
  EXPECT_EQ(number_in(folder.uri()), 3U);
  std::ofstream(folder.file("else")) << "something else";
  EXPECT_FALSE(Heap::copy(folder.uri(), folder.uri("else")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("else")));
  ASSERT_TRUE(Heap::copy(folder.uri(), folder.uri("other")));
  EXPECT_EQ(Heap::copy(folder.uri(), folder.uri("other")).error().code, ErrorCode::kConflict);
  EXPECT_EQ(number_in(folder.uri("other")), 3U);
}

TEST_F(HeapCopyTest, AFailedCopyLeavesNothing) {
  make_three_versions(folder.uri());
  const Status failed = Heap::copy(folder.uri(), "faulty+file:" + folder.file("copy") + "?seed=3&error=0.2");
  ASSERT_FALSE(failed);
  expect_no_files("copy");
  ASSERT_TRUE(Heap::copy(folder.uri(), folder.uri("copy")));
}

// The writer is in this process: a copy takes neither its addresses nor its locks.
void expect_whole_copies(const std::string& uri, const HeapFolder& folder, int copies) {
  std::atomic<bool> stop = false;
  {
    Heap heap = must(Heap::create(uri, kSmall));
    auto* const numbers = heap.construct<std::uint64_t>("numbers")[kCopied](1U);
    ASSERT_TRUE(heap.commit());
    std::thread writer([&] {
      for (std::uint64_t number = 2; !stop; ++number) {
        std::fill(numbers, numbers + kCopied, number);
        EXPECT_EQ(message(heap.commit()), "");
      }
    });
    for (int i = 0; i < copies; ++i) EXPECT_EQ(message(Heap::copy(uri, folder.uri("copy" + std::to_string(i)))), "");
    stop = true;
    writer.join();
    EXPECT_EQ(message(heap.commit()), "");
  }
  std::uint64_t before = 1;
  for (int i = 0; i < copies; ++i) {
    const std::string copy = folder.uri("copy" + std::to_string(i));
    EXPECT_EQ(message(Heap::check(copy)), "");
    const std::uint64_t number = number_in(copy);
    EXPECT_GE(number, before);
    before = number;
    EXPECT_TRUE(Heap::remove(copy));
  }
  EXPECT_EQ(message(Heap::check(uri)), "");
}

TEST_F(HeapCopyTest, IsOfOneCommitWhileThisProcessCommits) {
  expect_whole_copies(folder.uri(), folder, 5);
  expect_whole_copies("lmdb:" + folder.file("l"), folder, 2);
  expect_whole_copies("checksum+file:" + folder.file("c"), folder, 5);
}

TEST_F(HeapCopyTest, WhoIsKilledLeavesWhatACopyOrAHeapMayReplace) {
  make_three_versions(folder.uri());
  int unfinished = 0;
  for (int i = 0; i < 12; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string slow = "slow+file:" + folder.file("copy") + "?delay_us=1000";
      _exit(Heap::copy(folder.uri(), slow).has_value() ? 0 : 1);
    }
    while (!std::filesystem::exists(folder.file("copy"))) usleep(500);
    usleep(static_cast<useconds_t>(2'500 * i));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (const auto opened = Heap::open_read_only(folder.uri("copy"), kSmall); !opened) {
      EXPECT_EQ(opened.error().code, ErrorCode::kNotFound) << opened.error().message();
      ++unfinished;
      if (i % 2 == 0) {
        ASSERT_EQ(message(Heap::copy(folder.uri(), folder.uri("copy"))), "");
      } else {
        must(Heap::create(folder.uri("copy"), kSmall)).construct<int>("fresh")(1);
      }
    }
    EXPECT_EQ(message(Heap::check(folder.uri("copy"))), "");
    if (i % 2 == 0) {
      EXPECT_EQ(number_in(folder.uri("copy") + "@two"), 2U);
    }
    ASSERT_EQ(message(Heap::remove(folder.uri("copy"))), "");
  }
  EXPECT_GT(unfinished, 0);
}

TEST_F(HeapCopyTest, GoesBackToAnySnapshot) {
  make_three_versions(folder.uri());
  ASSERT_TRUE(Heap::copy(folder.uri(), folder.uri("copy")));
  EXPECT_EQ(Heap::roll_back(folder.uri(), "three").error().code, ErrorCode::kNotFound);
  ASSERT_EQ(message(Heap::roll_back(folder.uri(), "one")), "");
  ASSERT_EQ(message(Heap::roll_back(folder.uri("copy") + "@one")), "");
  for (const std::string& uri : {folder.uri(), folder.uri("copy")}) {
    EXPECT_EQ(number_in(uri), 1U);
    EXPECT_EQ(number_in(uri + "@one"), 1U);
    const auto versions = facts_of(uri).versions;
    ASSERT_EQ(versions.size(), 2U);  // "two" is gone
    EXPECT_EQ(versions[0].name, "one");
    EXPECT_EQ(message(Heap::check(uri)), "");
  }
}

}  // namespace
}  // namespace farheap::testing
