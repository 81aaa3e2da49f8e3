// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <cerrno>
#include <farheap/result.hpp>

namespace farheap {
namespace {

TEST(Error, ReadsAsOneSentence) {
  const Error error{ErrorCode::kPermission, "cannot open the store", "file:/mnt/nvme", "Permission denied",
                    "choose another folder"};
  EXPECT_EQ(error.message(), "cannot open the store: file:/mnt/nvme: Permission denied; choose another folder");
  EXPECT_EQ((Error{ErrorCode::kIo, "it broke", "", "", ""}).message(), "it broke");
}

TEST(Error, TheCodeFollowsErrno) {
  EXPECT_EQ(errno_error(EACCES, "a", "b").code, ErrorCode::kPermission);
  EXPECT_EQ(errno_error(ENOENT, "a", "b").code, ErrorCode::kNotFound);
  EXPECT_EQ(errno_error(ENOSPC, "a", "b").code, ErrorCode::kNoSpace);
  EXPECT_EQ(errno_error(ENOSYS, "a", "b").code, ErrorCode::kUnavailable);
  EXPECT_EQ(errno_error(EIO, "a", "b").code, ErrorCode::kIo);
  for (const int full : {ENOSPC, EDQUOT}) {
    EXPECT_EQ(errno_error(full, "a", "b", "name another").remedy, "make room; `df` shows what there is");
  }
  EXPECT_EQ(errno_error(EACCES, "a", "b", "name another").remedy, "name another");
  EXPECT_EQ(errno_error(ENOENT, "a", "b").why, "No such file or directory");
}

}  // namespace
}  // namespace farheap
