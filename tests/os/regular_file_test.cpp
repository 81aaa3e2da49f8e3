// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/regular_file.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace farheap::os {
namespace {

class RegularFileTest : public ::testing::Test {
 protected:
  RegularFileTest() {
    char name[] = "/tmp/farheap-regular-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~RegularFileTest() override { std::filesystem::remove_all(folder_); }
  std::string file_of(std::size_t bytes) {
    const std::string path = folder_ + "/file";
    std::ofstream(path) << std::string(bytes, 'x');
    return path;
  }
  static Result<std::string> read(const std::string& path) {
    return read_regular_file(path, 100'000, "cannot read it", "do something else");
  }
  std::string folder_;
};

TEST_F(RegularFileTest, IsReadWhole) {
  for (const std::size_t bytes : {0u, 1u, 65'535u, 65'536u, 65'537u, 100'000u}) {
    const auto text = read(file_of(bytes));
    ASSERT_TRUE(text) << text.error().message();
    EXPECT_EQ(*text, std::string(bytes, 'x'));
  }
}

TEST_F(RegularFileTest, ThatIsLargerIsRefused) {
  const auto text = read(file_of(100'001));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(text.error().message().find("larger than 100000 bytes"), std::string::npos) << text.error().message();
  EXPECT_EQ(text.error().remedy, "do something else");
}

// Reading a FIFO waits for a writer, and a device has no end.
TEST_F(RegularFileTest, WhatIsNoneIsRefusedAndNotWaitedFor) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, folder_, std::string("/dev/zero"), std::string("/dev/null")}) {
    const auto text = read(path);
    ASSERT_FALSE(text) << path;
    EXPECT_EQ(text.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(text.error().subject, path);
    EXPECT_NE(text.error().message().find("no regular file"), std::string::npos) << text.error().message();
  }
}

TEST_F(RegularFileTest, ThatIsNotThereIsAnError) {
  const auto text = read(folder_ + "/none");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace farheap::os
