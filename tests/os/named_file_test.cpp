// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What somebody else may have put under a name, and a process at its end.
#include "os/named_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "os/dying_process.hpp"

namespace farheap::os {
namespace {

constexpr char kWhat[] = "cannot do it";
constexpr uid_t kStranger = 65534;

class NamedFileTest : public testing::Test {
 protected:
  NamedFileTest() {
    std::string name = testing::TempDir() + "/farheap-named-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~NamedFileTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::string make(const std::string& name, const std::string& text = "secret") const {
    std::ofstream(at(name)) << text;
    return at(name);
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static bool own_opens(const std::string& path, mode_t mode = 0600) {
    const auto opened = open_own_file(path, mode, kWhat);
    if (opened) close(opened->file);
    return opened.has_value();
  }

  std::string folder_;
};

TEST_F(NamedFileTest, WhatIsMadeHasItsModeWhateverTheUmask) {
  const mode_t before = umask(0077);
  const auto made = open_own_file(at("new"), 0640, kWhat);
  umask(before);
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->is_new);
  struct stat status{};
  ASSERT_EQ(fstat(made->file, &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
  close(made->file);
  EXPECT_TRUE(own_opens(at("new"), 0));
  EXPECT_FALSE(own_opens(at("nothing"), 0));
}

TEST_F(NamedFileTest, ALinkIsNotFollowed) {
  std::filesystem::create_symlink(make("victim"), at("link"));
  std::filesystem::create_symlink(at("not there yet"), at("dangling"));
  EXPECT_FALSE(own_opens(at("link")));
  EXPECT_FALSE(own_opens(at("dangling")));
  EXPECT_FALSE(open_file_to_read(at("link"), kWhat));
  EXPECT_FALSE(std::filesystem::exists(at("not there yet")));
}

TEST_F(NamedFileTest, AFileWithTwoNamesIsNotWritten) {
  std::filesystem::create_hard_link(make("victim"), at("name"));
  const auto opened = open_own_file(at("name"), 0600, kWhat);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kPermission);
  EXPECT_NE(opened.error().message().find("hard link"), std::string::npos) << opened.error().message();
  EXPECT_FALSE(open_output_file(at("name"), 0666, kWhat));
  EXPECT_EQ(text_of(at("victim")), "secret");
}

TEST_F(NamedFileTest, WhatEverybodyMayWriteIsNotTrusted) {
  std::filesystem::permissions(make("open"), std::filesystem::perms(0666));
  EXPECT_FALSE(own_opens(at("open")));
  EXPECT_FALSE(open_file_to_read(at("open"), kWhat));
}

TEST_F(NamedFileTest, APipeIsNoPlainFileAndIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(own_opens(at("pipe")));
  EXPECT_FALSE(open_file_to_read(at("pipe"), kWhat));
}

TEST_F(NamedFileTest, AFileOfSomebodyElseIsNotWritten) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  ASSERT_EQ(chown(make("theirs").c_str(), kStranger, kStranger), 0);
  const auto opened = open_own_file(at("theirs"), 0600, kWhat);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find("user 65534"), std::string::npos) << opened.error().message();
  EXPECT_FALSE(open_output_file(at("theirs"), 0600, kWhat));
  EXPECT_EQ(text_of(at("theirs")), "secret");
  const auto read = open_file_to_read(at("theirs"), kWhat);
  ASSERT_TRUE(read) << "who may read a file may read it";
  EXPECT_FALSE(check_trusted_file(*read, at("theirs"), kWhat));
  close(*read);
}

TEST_F(NamedFileTest, LinksOfThisUserAreFollowedToTheFile) {
  ASSERT_FALSE(make("file").empty());
  std::filesystem::create_symlink("file", at("one"));
  std::filesystem::create_symlink(at("one"), at("two"));
  EXPECT_EQ(follow_links(at("two"), kWhat).value(), at("file"));
  EXPECT_EQ(follow_links(at("file"), kWhat).value(), at("file"));
  EXPECT_EQ(follow_links(at("nothing"), kWhat).value(), at("nothing"));
  std::filesystem::create_symlink("round", at("round"));
  EXPECT_FALSE(follow_links(at("round"), kWhat));
}

TEST_F(NamedFileTest, ALinkOfAStrangerLeadsToTheStrangersFilesAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  std::filesystem::create_symlink(make("victim"), at("planted"));
  ASSERT_EQ(lchown(at("planted").c_str(), kStranger, kStranger), 0);
  const auto refused = follow_links(at("planted"), kWhat);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find(at("victim")), std::string::npos) << refused.error().message();
  EXPECT_FALSE(open_output_file(at("planted"), 0666, kWhat));
  EXPECT_EQ(text_of(at("victim")), "secret");
  ASSERT_EQ(chown(at("victim").c_str(), kStranger, kStranger), 0);
  EXPECT_EQ(follow_links(at("planted"), kWhat).value(), at("victim"));
}

TEST_F(NamedFileTest, AnOutputIsEmptiedOrMadeAndWhatIsNoFileIsWrittenTo) {
  const auto first = open_output_file(make("out"), 0666, kWhat);
  ASSERT_TRUE(first);
  close(*first);
  EXPECT_EQ(text_of(at("out")), "");
  const auto second = open_output_file(at("new"), 0666, kWhat);
  ASSERT_TRUE(second);
  close(*second);
  const auto nowhere = open_output_file("/dev/null", 0666, kWhat);
  ASSERT_TRUE(nowhere);
  close(*nowhere);
}

TEST_F(NamedFileTest, WhatIsReplacedKeepsItsContents) {
  std::filesystem::create_symlink(make("victim"), at("part"));
  const auto part = replace_file(at("part"), 0600, kWhat);
  ASSERT_TRUE(part);
  EXPECT_EQ(write(*part, "new", 3), 3);
  close(*part);
  EXPECT_EQ(text_of(at("victim")), "secret");
  EXPECT_EQ(text_of(at("part")), "new");
}

TEST_F(NamedFileTest, NamesThatCannotBeMadeDurableAreAnError) {
  EXPECT_TRUE(make_names_durable(make("file"), kWhat));
  EXPECT_FALSE(make_names_durable(at("no such folder/file"), kWhat));
}

TEST(DyingProcess, IsOneThatHasEndedAndIsNotWaitedForAndNoOther) {
  EXPECT_FALSE(is_dying(getpid()));
  EXPECT_FALSE(is_dying(0));
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_FALSE(is_dying(child));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_dying(child));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(is_dying(child)) << "it is gone, and its number means nothing";
}

}  // namespace
}  // namespace farheap::os
