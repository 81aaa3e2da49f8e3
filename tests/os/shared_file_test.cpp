// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/shared_file.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace farheap::os {
namespace {

constexpr int kRefused = 99;

class SharedFileTest : public testing::Test {
 protected:
  SharedFileTest() {
    std::string name = testing::TempDir() + "/farheap-shared-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~SharedFileTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::size_t descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  }
  // What `act` answers in a child.
  static int in_a_child(const std::function<int()>& act) {
    const pid_t child = fork();
    if (child == 0) _exit(act());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string folder_;
};

TEST_F(SharedFileTest, IsZerosOfTheWantedSizeForItsUserAlone) {
  const mode_t before = umask(0);
  const auto file = SharedFile::create(at("new"), 10000);
  umask(before);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->size(), 10000u);
  EXPECT_EQ(text_of(at("new")), std::string(10000, '\0'));
  struct stat status{};
  ASSERT_EQ(stat(at("new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_GE(status.st_blocks * 512, 10000) << "its room is not taken";
}

TEST_F(SharedFileTest, LeavesNoDescriptor) {
  const std::size_t before = descriptors();
  const auto file = SharedFile::create(at("new"), 1);
  ASSERT_TRUE(file);
  EXPECT_FALSE(SharedFile::create(at("new"), 1));
  EXPECT_FALSE(SharedFile::create(at("no such folder/new"), 1));
  EXPECT_EQ(descriptors(), before);
}

TEST_F(SharedFileTest, WhatIsWrittenIsInTheFileThoughTheProcessIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto file = SharedFile::create(at("killed"), 3 * 4096);
    if (!file) _exit(1);
    for (std::size_t i = 0; i < file->size(); ++i) file->data()[i] = static_cast<std::byte>('a' + i % 26);
    if (write(ready[1], "", 1) != 1) _exit(2);
    for (;;) pause();
  }
  close(ready[1]);
  char word = 0;
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  close(ready[0]);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::string text = text_of(at("killed"));
  ASSERT_EQ(text.size(), 3u * 4096);
  for (std::size_t i = 0; i < text.size(); ++i) ASSERT_EQ(text[i], static_cast<char>('a' + i % 26)) << i;
}

TEST_F(SharedFileTest, StaysWhenItIsUnmappedAndIsOneValueWhenItIsMoved) {
  {
    SharedFile outer;
    EXPECT_EQ(outer.data(), nullptr);
    auto file = SharedFile::create(at("moved"), 4);
    ASSERT_TRUE(file);
    SharedFile inner = std::move(*file);
    EXPECT_EQ(file->data(), nullptr);
    std::memcpy(inner.data(), "abcd", 4);
    outer = std::move(inner);
    EXPECT_EQ(std::memcmp(outer.data(), "abcd", 4), 0);
    EXPECT_EQ(outer.size(), 4u);
  }
  EXPECT_EQ(text_of(at("moved")), "abcd");
}

TEST_F(SharedFileTest, WhatHasItsNameStaysAsItIs) {
  std::ofstream(at("there")) << "theirs";
  const auto over = SharedFile::create(at("there"), 4096);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, ErrorCode::kIo);
  EXPECT_NE(over.error().message().find(at("there")), std::string::npos) << over.error().message();
  EXPECT_EQ(text_of(at("there")), "theirs");

  std::filesystem::create_symlink(at("not there yet"), at("dangling"));
  EXPECT_FALSE(SharedFile::create(at("dangling"), 4096));
  EXPECT_FALSE(std::filesystem::exists(at("not there yet")));
  EXPECT_TRUE(std::filesystem::is_symlink(at("dangling")));

  std::filesystem::create_directory(at("folder"));
  EXPECT_FALSE(SharedFile::create(at("folder"), 4096));
}

TEST_F(SharedFileTest, WithoutAFolderIsAnError) {
  const auto file = SharedFile::create(at("no such folder/new"), 4096);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().why, "No such file or directory");
  EXPECT_EQ(file.error().subject, at("no such folder/new"));
}

TEST_F(SharedFileTest, OverTheLimitOfAFilesSizeIsAnErrorAndLeavesNoFile) {
  EXPECT_EQ(in_a_child([&] {
              (void)signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{8192, 8192};
              if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              const auto large = SharedFile::create(at("large"), 8193);
              if (large) return 2;
              if (large.error().code != ErrorCode::kIo || large.error().why != "File too large") return 3;
              if (std::filesystem::exists(at("large"))) return 4;
              return SharedFile::create(at("small"), 8192) ? 0 : 5;
            }),
            0);
}

TEST_F(SharedFileTest, OnAFullDiskIsAnErrorAndLeavesNoFile) {
  const std::string disk = at("disk");
  std::filesystem::create_directory(disk);
  const int seen = in_a_child([&] {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kRefused;
    (void)mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("none", disk.c_str(), "tmpfs", 0, "size=64k") != 0) return kRefused;
    const auto large = SharedFile::create(disk + "/large", std::size_t{1} << 20);
    if (large) return 1;
    if (large.error().code != ErrorCode::kNoSpace) return 2;
    if (std::filesystem::exists(disk + "/large")) return 3;
    // Nothing of it is left over in the disk's room.
    return SharedFile::create(disk + "/small", 32 << 10) ? 0 : 4;
  });
  if (seen == kRefused) GTEST_SKIP() << "NOT TESTED: a disk of its own cannot be mounted here; it takes root";
  EXPECT_EQ(seen, 0);
}

}  // namespace
}  // namespace farheap::os
