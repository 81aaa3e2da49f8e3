// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/without_secrets.hpp"

#include <gmock/gmock.h>

#include <farheap/result.hpp>

namespace farheap::base {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(WithoutSecrets, LeavesTheUriWithoutItsPassword) {
  EXPECT_EQ(without_secrets("redis://:pw@h:6379/7"), "redis://h:6379/7");
  EXPECT_EQ(without_secrets("redis://user:pw@h"), "redis://user@h");
  EXPECT_EQ(without_secrets("redis+cluster://user:p@w@h1,h2:7001/app?timeout_ms=5"),
            "redis+cluster://user@h1,h2:7001/app?timeout_ms=5");
  EXPECT_EQ(without_secrets("checksum+rediss://:p%40w@[::1]:6379"), "checksum+rediss://[::1]:6379");
  EXPECT_EQ(without_secrets("redis://:pw@/run/redis.sock"), "redis:///run/redis.sock");
  EXPECT_EQ(without_secrets("pages=redis://:pw@h,sync=etcd://root:pw@a,b:2379/x"),
            "pages=redis://h,sync=etcd://root@a,b:2379/x");
  EXPECT_EQ(without_secrets("redis://h?password=pw&timeout_ms=5"), "redis://h?password=***&timeout_ms=5");
}

TEST(WithoutSecrets, WhatHasNoneStaysAsItIs) {
  for (const char* text :
       {"", "mem:", "file:/a@b", "lmdb:/a:b@c", "redis://h", "redis://user@h", "redis:///run/redis.sock/7",
        "redis://h/7/graph@monday", "redis://h:6379/7/graph@monday", "etcd://h1:1,h2:2/x@y", "redis://[::1]:6379/1/g@s",
        "bigtable://project/instance/table", "redis://h?password_file=/a&password_env=NAME", "no password=needed",
        "cannot reach redis://h:6379: refused; ask root@example", "cannot reach redis://h: refused by root@example",
        "pages=redis://h,sync=etcd://a,b/x@y"}) {
    EXPECT_EQ(without_secrets(text), text);
  }
}

// More is left out than had to be, and not less.
TEST(WithoutSecrets, PasswordsThatAreNotWrittenAsTheyShouldBe) {
  for (const char* text : {"redis://:s/cret@h", "redis://user:s?cret@h/7", "redis://user:s#cret@h",
                           "redis://u:s cret@h", "redis://my user:secret@h/7", "redis://my user@secret:cret@h:1",
                           "redis://:/secret@h", "redis://:1/secret@h", "redis://user:se'cret@h", "x://:s/cret@h@i",
                           "redis://default:p@s:s/cret?#d%x@127.0.0.1:17392", "redis://default:aa@cret/cc@h:1",
                           "etcd://root:top@se/cret@127.0.0.1", "cannot open: redis://u:s/cret@h: refused"}) {
    EXPECT_THAT(without_secrets(text), Not(HasSubstr("cret"))) << text;
    EXPECT_TRUE(take_authority(std::string_view(text).substr(std::string_view(text).find("//") + 2)).unclear) << text;
  }
}

TEST(WithoutSecrets, NoErrorHasOne) {
  const Error made = fail(ErrorCode::kIo, "what redis://:secret@h", "redis://:secret@h", "redis://:secret@h: no",
                          "try redis://:secret@h")
                         .value();
  for (const auto& part : {made.what, made.subject, made.why, made.remedy, made.message()}) {
    EXPECT_THAT(part, Not(HasSubstr("secret")));
  }
  EXPECT_EQ(made.subject, "redis://h");
  const Error built{ErrorCode::kIo, "what", "redis://:secret@h", "", ""};
  EXPECT_EQ(built.message(), "what: redis://h");
}

}  // namespace
}  // namespace farheap::base
