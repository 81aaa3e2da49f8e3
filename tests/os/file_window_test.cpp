// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/file_window.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

namespace farheap::os {
namespace {

class FileWindowTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = memfd_create("window", MFD_CLOEXEC);
    ASSERT_GE(file_, 0);
    ASSERT_EQ(ftruncate(file_, static_cast<off_t>(3 * FileWindow::kPieceBytes)), 0);
  }
  void TearDown() override { close(file_); }
  void write_at(std::uint64_t offset, const char* text) const {
    const std::size_t bytes = std::strlen(text);
    ASSERT_EQ(pwrite(file_, text, bytes, static_cast<off_t>(offset)), static_cast<ssize_t>(bytes));
  }
  int file_ = -1;
};

TEST_F(FileWindowTest, ShowsWhatIsWrittenBeforeAndAfter) {
  FileWindow window(file_);
  const std::uint64_t far = 2 * FileWindow::kPieceBytes + 8192;
  write_at(far, "before");
  const std::byte* at = window.find(far, 6);
  ASSERT_NE(at, nullptr);
  EXPECT_EQ(std::memcmp(at, "before", 6), 0);
  write_at(far, "after.");
  EXPECT_EQ(std::memcmp(at, "after.", 6), 0);
  EXPECT_EQ(window.find(far + 1, 5), at + 1);
}

TEST_F(FileWindowTest, NothingIsShownAcrossPiecesOrBeyondThem) {
  FileWindow window(file_);
  EXPECT_NE(window.find(FileWindow::kPieceBytes - 4096, 4096), nullptr);
  EXPECT_EQ(window.find(FileWindow::kPieceBytes - 4096, 8192), nullptr);
  EXPECT_EQ(window.find(std::uint64_t{1} << 60, 4096), nullptr);
}

TEST_F(FileWindowTest, ThreadsThatAskAtOnceGetTheSamePlace) {
  for (int turn = 0; turn < 50; ++turn) {
    FileWindow window(file_);
    std::vector<const std::byte*> found(4);
    std::vector<std::thread> threads;
    for (auto& one : found) threads.emplace_back([&] { one = window.find(4096, 4096); });
    for (auto& thread : threads) thread.join();
    for (const std::byte* one : found) ASSERT_TRUE(one != nullptr && one == found[0]);
  }
}

}  // namespace
}  // namespace farheap::os
