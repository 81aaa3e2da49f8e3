// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/secrets.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "store/kinds.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

using store::StoreUri;
using testing::HasSubstr;
using testing::Not;

// Every engine that asks for a password: whether or not this build has it, its URIs are known.
StoreUri taken(const std::string& text) {
  auto uri = store::parse_uri(text, store::vocabulary());
  EXPECT_TRUE(uri) << uri.error().message();
  return uri ? *uri : StoreUri();
}

Result<store::Login> login_of(const std::string& text, const StoreOptions& options = {}) {
  const auto uri = taken(text);
  return store::find_login(uri.place, store::Parameters(uri, uri.engine), options);
}

std::string password_of(const std::string& text, const StoreOptions& options = {}) {
  const auto login = login_of(text, options);
  EXPECT_TRUE(login) << login.error().message();
  return std::string(login ? login->password.view() : "");
}

class StorePassword : public testing::Test {
 protected:
  std::string file_of(const std::string& contents, const std::string& name = "password", int mode = 0600) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << contents;
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
    return path;
  }
  void TearDown() override { unsetenv("FARHEAPTEST_PASSWORD"); }
  TemporaryFolder folder_;
};

TEST_F(StorePassword, StandsInTheUri) {
  const auto login = login_of("redis://user:p%40%2Fw%25zz@h:6379/7");
  ASSERT_TRUE(login);
  EXPECT_EQ(login->user, "user");
  EXPECT_EQ(login->password.view(), "p@/w%zz");
  EXPECT_EQ(store::place_without_login(taken("redis://user:pw@h:6379/7").place), "//h:6379/7");
  EXPECT_EQ(store::place_without_login("//h:6379/7/a@b"), "//h:6379/7/a@b");
  EXPECT_EQ(store::place_without_login("/folder/a@b"), "/folder/a@b");
  EXPECT_EQ(password_of("redis://user@h"), "");
  EXPECT_EQ(login_of("redis://h?user=other")->user, "other");
}

// They were taken for what they look like, and the server said that the password is wrong.
TEST_F(StorePassword, WhatIsNoEscapeIsRefused) {
  for (const char* uri :
       {"redis://u:hunter2%zz@h", "redis://u:hunter2%@h", "etcd://u:hunter2%4@h", "redis://u%g0:hunter2@h"}) {
    const auto login = login_of(uri);
    ASSERT_FALSE(login) << uri;
    EXPECT_EQ(login.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(login.error().message(), HasSubstr("%25"));
    EXPECT_THAT(login.error().message(), Not(HasSubstr("hunter2")));
  }
}

TEST_F(StorePassword, StandsInAFileOrAVariable) {
  setenv("FARHEAPTEST_PASSWORD", "from the variable", 1);
  const auto one = file_of("from the file\r\n");
  const auto two = file_of("from the option", "other");
  EXPECT_EQ(password_of("redis://h?password_file=" + one), "from the file");
  EXPECT_EQ(password_of("redis://h", {.password_file = two}), "from the option");
  EXPECT_EQ(password_of("etcd://h?password_env=FARHEAPTEST_PASSWORD"), "from the variable");
}

TEST_F(StorePassword, TheFirstOfThemCounts) {
  setenv("FARHEAPTEST_PASSWORD", "variable", 1);
  const StoreOptions options{.password_file = file_of("option", "other")};
  const auto rest = "password_env=FARHEAPTEST_PASSWORD&password_file=" + file_of("file");
  EXPECT_EQ(password_of("redis://:uri@h?" + rest, options), "uri");
  EXPECT_EQ(password_of("redis://h?" + rest, options), "variable");
  EXPECT_EQ(password_of("redis://h?" + rest.substr(rest.find('&') + 1), options), "file");
}

TEST_F(StorePassword, AFileOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const std::string file = file_of("secret");
  ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  const auto login = login_of("redis://h?password_file=" + file);
  ASSERT_FALSE(login);
  EXPECT_EQ(login.error().code, ErrorCode::kPermission);
}

TEST_F(StorePassword, AFileThatOthersMayReadIsRefused) {
  const auto open_to_all = login_of("redis://h?password_file=" + file_of("secret", "shared", 0644));
  ASSERT_FALSE(open_to_all);
  EXPECT_EQ(open_to_all.error().code, ErrorCode::kPermission);
  EXPECT_THAT(open_to_all.error().remedy, HasSubstr("chmod 600"));
  EXPECT_THAT(open_to_all.error().message(), Not(HasSubstr("secret")));
  EXPECT_EQ(login_of("redis://h?password_file=/nowhere/at/all").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(login_of("redis://h", {.password_file = file_of("\n")}).error().why, HasSubstr("empty"));
  EXPECT_THAT(login_of("redis://h", {.password_file = file_of(std::string(5000, 'x'))}).error().why,
              HasSubstr("at most"));
  EXPECT_THAT(login_of("redis://h?password_env=FARHEAPTEST_PASSWORD").error().message(), HasSubstr("not set"));
}

TEST_F(StorePassword, GoesAlongToWhereTheEnvironmentIsAnother) {
  setenv("FARHEAPTEST_PASSWORD", "p@/%w", 1);
  for (const char* uri : {"redis://u@h:1/7/x@y?password_env=FARHEAPTEST_PASSWORD&timeout_ms=9",
                          "redis://h?timeout_ms=9&password_env=FARHEAPTEST_PASSWORD",
                          "redis://h?timeout_ms=9&redis.password_env=FARHEAPTEST_PASSWORD&patience_s=1"}) {
    setenv("FARHEAPTEST_PASSWORD", "p@/%w", 1);
    const auto inside = store::with_login_inside(uri);
    ASSERT_TRUE(inside) << inside.error().message();
    unsetenv("FARHEAPTEST_PASSWORD");
    EXPECT_EQ(password_of(*inside), "p@/%w") << *inside;
    EXPECT_EQ(taken(*inside).text(), taken(uri).text());
    EXPECT_EQ(taken(*inside).parameters.size(), taken(uri).parameters.size() - 1);
  }
  EXPECT_THAT(
      store::password_variables("pages=redis://h?password_env=A&timeout_ms=1,sync=etcd://h?etcd.password_env=B"),
      testing::ElementsAre("A", "B"));
  EXPECT_THAT(store::password_variables("redis://h?password_file=A"), testing::IsEmpty());
  EXPECT_EQ(store::with_login_inside("redis://:own@h").value(), "redis://:own@h");
  EXPECT_EQ(store::with_login_inside("file:/a?b").value(), "file:/a?b");
  EXPECT_FALSE(store::with_login_inside("redis://h?password_env=FARHEAPTEST_PASSWORD"));
  EXPECT_EQ(store::with_whole_paths("pages=redis://h?password_file=a,sync=redis://h?ca_file=/b", "/here"),
            "pages=redis://h?password_file=/here/a,sync=redis://h?ca_file=/b");
}

// Whatever is wrong with the URI, the message that says so does not repeat the password.
TEST(StoreMessages, NeverHoldAPassword) {
  for (const char* uri : {"rdis://u:hunter2@h",
                          "redis://u:hunt/er2@h",
                          "redis://u:hunt?er2@h",
                          "redis:u:hunter2@h",
                          "redis:/u:hunter2@h",
                          "redis+redis://u:hunter2@h",
                          "checksum+checksum+redis://u:hunter2@h",
                          "redis://u:hunter2@h?nothing=1",
                          "redis://u:hunter2@h?timeout_ms=soon",
                          "redis://u:hunter2@h?timeout_ms",
                          "redis://u:hunter2@h:port/7",
                          "redis://h?password=hunter2",
                          "redis://h?pasword_file",
                          "encrypt+checksum+redis://u:hunter2@h",
                          "spanner://u:hunter2@h",
                          "pages=redis://u:hunter2@h",
                          "pages=redis://u:hunter2@h,sync=nowhere://u:hunter2@h",
                          "checksum+pages=redis://u:hunter2@h,sync=mem:",
                          "mem://u:hunter2@h?x=1",
                          "redis://my user:hunter2@h/7",
                          "redis://u:hunt er2@h:1/7"}) {
    const auto opened = open_store(uri);
    ASSERT_FALSE(opened) << uri;
    const Error& error = opened.error();
    for (const auto& part : {error.what, error.subject, error.why, error.remedy, error.message()}) {
      EXPECT_THAT(part, Not(HasSubstr("hunter2"))) << uri;
      EXPECT_THAT(part, Not(HasSubstr("er2@"))) << uri;
    }
  }
}

}  // namespace
}  // namespace farheap::test
