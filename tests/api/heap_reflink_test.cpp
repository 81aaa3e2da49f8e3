// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes are shared where the file system does that. An XFS in a file is mounted for it, which takes root and xfsprogs;
// where that is refused, nothing here was tested.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>

#include "heap_folder.hpp"

namespace farheap::testing {
namespace {

constexpr std::size_t kNumbers = 4'000'000;
constexpr std::uint64_t kHeapBytes = kNumbers * sizeof(std::uint64_t);

std::string message(const Status& status) { return status ? "" : status.error().message(); }

class HeapReflinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.file("xfs"));
    const std::string image = folder_.file("image"), log = folder_.file("log");
    const std::string command = "{ truncate -s 400M " + image + " && mkfs.xfs -q -m reflink=1 " + image +
                                " && mount -o loop " + image + " " + folder_.file("xfs") + "; } > " + log + " 2>&1";
    mounted_ = system(command.c_str()) == 0;
    if (mounted_) return;
    std::string why;
    if (FILE* const file = fopen(log.c_str(), "r")) {
      char line[256];
      while (fgets(line, sizeof line, file) != nullptr) why += line;
      fclose(file);
    }
    GTEST_SKIP() << "NOT TESTED: no file system that shares bytes could be mounted: " << why;
  }
  void TearDown() override {
    if (!mounted_) return;
    EXPECT_EQ(umount2(folder_.file("xfs").c_str(), MNT_DETACH), 0);
  }
  [[nodiscard]] std::string uri(const std::string& name) const { return folder_.uri("xfs/" + name); }
  [[nodiscard]] std::uint64_t used() const {
    struct statvfs space{};
    sync();
    EXPECT_EQ(statvfs(folder_.file("xfs").c_str(), &space), 0);
    return (space.f_blocks - space.f_bfree) * space.f_frsize;
  }
  static void make(const std::string& uri) {
    Heap heap = must(Heap::create(uri, kSmall));
    auto* const numbers = heap.construct<std::uint64_t>("numbers")[kNumbers](1U);
    ASSERT_TRUE(heap.snapshot("one"));
    std::fill(numbers, numbers + kNumbers / 2, 2);
    ASSERT_TRUE(heap.commit());
  }
  // Each half has one number: as text.
  static std::string numbers_in(const std::string& uri) {
    const Heap heap = must(Heap::open_read_only(uri, kSmall));
    const std::uint64_t* const first = heap.find_array<std::uint64_t>("numbers").first;
    std::string text;
    for (const std::uint64_t* half : {first, first + kNumbers / 2}) {
      const bool alike = std::all_of(half, half + kNumbers / 2, [&](auto one) { return one == *half; });
      text += alike ? std::to_string(*half) : "?";
    }
    return text;
  }

 private:
  HeapFolder folder_;
  bool mounted_ = false;
};

TEST_F(HeapReflinkTest, ACopySharesItsBytesAndHasTheSameVersions) {
  make(uri("heap"));
  const std::uint64_t before = used();
  std::uint64_t calls = 0;
  ASSERT_EQ(message(Heap::copy(uri("heap"), uri("copy"),
                               {.progress =
                                    [&](auto done, auto total) {
                                      EXPECT_EQ(done, total);
                                      ++calls;
                                    }})),
            "");
  EXPECT_EQ(calls, 1U);
  EXPECT_LT(used() - before, kHeapBytes / 8);
  ASSERT_EQ(message(Heap::copy(uri("heap"), uri("bytes"), {.share_bytes = false})), "");
  EXPECT_GT(used() - before, kHeapBytes);
  std::vector<VersionInfo> versions[2];
  std::string ids[2];
  for (int i = 0; i < 2; ++i) {
    const std::string copy = uri(i == 0 ? "copy" : "bytes");
    EXPECT_EQ(message(Heap::check(copy)), "");
    EXPECT_EQ(numbers_in(copy), "21");
    EXPECT_EQ(numbers_in(copy + "@one"), "11");
    Heap heap = must(Heap::open_read_only(copy, kSmall));
    versions[i] = heap.versions().value();
    ids[i] = heap.id();
  }
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[0], must(Heap::open_read_only(uri("heap"), kSmall)).id());
  ASSERT_EQ(versions[0].size(), versions[1].size());
  for (std::size_t i = 0; i < versions[0].size(); ++i) {
    EXPECT_EQ(versions[0][i].name, versions[1][i].name);
    EXPECT_EQ(versions[0][i].commit, versions[1][i].commit);
    EXPECT_EQ(versions[0][i].time_ns, versions[1][i].time_ns);
    EXPECT_EQ(versions[0][i].pages, versions[1][i].pages);
  }
}

TEST_F(HeapReflinkTest, WhatChangesInOneIsNotSeenInTheOther) {
  make(uri("heap"));
  ASSERT_EQ(message(Heap::copy(uri("heap"), uri("copy"))), "");
  const auto change = [](const std::string& uri, std::uint64_t number) {
    Heap heap = must(Heap::open(uri, kSmall));
    std::uint64_t* const first = heap.find_array<std::uint64_t>("numbers").first;
    for (int i = 0; i < 4; ++i) {  // slots are used again
      std::fill(first + kNumbers / 2, first + kNumbers, number);
      ASSERT_EQ(message(heap.commit()), "");
    }
    ASSERT_EQ(message(heap.remove_snapshot("one")), "");
  };
  change(uri("copy"), 5);
  EXPECT_EQ(numbers_in(uri("heap")), "21");
  EXPECT_EQ(numbers_in(uri("heap") + "@one"), "11");
  change(uri("heap"), 7);
  EXPECT_EQ(numbers_in(uri("copy")), "25");
  EXPECT_EQ(numbers_in(uri("heap")), "27");
  EXPECT_EQ(message(Heap::check(uri("heap"))), "");
  EXPECT_EQ(message(Heap::check(uri("copy"))), "");
}

TEST_F(HeapReflinkTest, BesideAWriterBytesAreCopied) {
  make(uri("heap"));
  const std::uint64_t before = used();
  {
    const Heap heap = must(Heap::open(uri("heap"), kSmall));
    ASSERT_EQ(message(Heap::copy(uri("heap"), uri("copy"))), "");
  }
  EXPECT_GT(used() - before, kHeapBytes);
  EXPECT_EQ(numbers_in(uri("copy")), "21");
  EXPECT_EQ(message(Heap::check(uri("copy"))), "");
}

}  // namespace
}  // namespace farheap::testing
