// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scratch stores on a Redis server: who is in use, and who has left something.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/store/redis_fixture.hpp"

namespace farheap::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RedisFaults, AScratchStoreIsGoneWithTheLastProcessThatHasIt) {
  const auto uri = uri_on(shared_port(), "/3/parent");
  const auto left = [&] { return tell(shared_port(), {"INFO", "keyspace"}).text; };
  auto store = open_or_fail(uri);
  (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
  EXPECT_THAT(left(), HasSubstr("db3"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    (void)!read(ends[0], &byte, 1);  // until the parent has let go
    const bool is_there = expect_blocks(*store, 0, 100) == Outcome::kOk;
    store.reset();
    _exit(is_there ? 0 : 1);
  }
  close(ends[0]);
  store.reset();
  auto another = open_or_fail(uri);  // collects what nobody has: not this
  another.reset();
  EXPECT_THAT(left(), HasSubstr("db3"));
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(left(), Not(HasSubstr("db3")));
}

std::string keyspace() { return tell(shared_port(), {"INFO", "keyspace"}).text; }

// The one scratch store below a name: its id, and what the server knows of when it was heard of.
struct Entry {
  std::string id, note;
};
Entry entry_of(unsigned database, const std::string& parent) {
  const auto key = store::redis::Keys(parent).scratch();
  const auto all = tell_in(shared_port(), database, {"HGETALL", key});
  if (all.elements.size() != 2) throw std::runtime_error("not one scratch store");
  return {all.elements[0].text, all.elements[1].text};
}

// As if it were on another machine, where it was last heard of just now, or in the year 2001.
void move_elsewhere(unsigned database, const std::string& parent, bool is_old, unsigned grace_s = 3600) {
  const auto entry = entry_of(database, parent);
  const auto space = entry.note.find(' '), second = entry.note.find(' ', space + 1);
  const auto when = is_old ? " 1000000000" : entry.note.substr(space, second - space);
  (void)tell_in(shared_port(), database,
                {"HSET", store::redis::Keys(parent).scratch(), entry.id,
                 entry.note.substr(0, space) + when + " " + std::to_string(grace_s) + " elsewhere"});
}

void leave_a_scratch_store(const std::string& uri) {
  const pid_t child = fork();
  if (child == 0) {
    auto store = open_or_fail(uri);
    (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(RedisFaults, WhatAKilledProgramLeftIsCollectedByTheNext) {
  const auto uri = uri_on(shared_port(), "/4/parent");
  leave_a_scratch_store(uri);
  EXPECT_THAT(keyspace(), HasSubstr("db4"));
  const auto listed = list_stores(uri);
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().lifetime, Lifetime::kScratch);
  EXPECT_FALSE(listed->front().in_use);
  open_or_fail(uri).reset();
  EXPECT_THAT(keyspace(), Not(HasSubstr("db4")));
}

// Whether it has ended or lost its connection cannot be told from here.
TEST(RedisFaults, WhatAProgramOnAnotherMachineLeftIsCollectedAfterItsGrace) {
  const auto uri = uri_on(shared_port(), "/4/parent");
  leave_a_scratch_store(uri);
  move_elsewhere(4, "parent", false);
  open_or_fail(uri).reset();
  EXPECT_TRUE(list_stores(uri)->front().in_use);
  move_elsewhere(4, "parent", true);
  EXPECT_FALSE(list_stores(uri)->front().in_use);
  open_or_fail(uri).reset();
  EXPECT_THAT(keyspace(), Not(HasSubstr("db4")));
}

// Servers drop idle connections (`timeout`), and so do people and routers.
TEST(RedisFaults, AScratchStoreWhoseConnectionWasDroppedIsNotTakenForLeft) {
  const auto uri = uri_on(shared_port(), "/5/parent");
  auto store = open_or_fail(uri);
  (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
  for (const bool is_elsewhere : {false, true}) {
    if (is_elsewhere) move_elsewhere(5, "parent", false);
    (void)tell(shared_port(), {"CLIENT", "KILL", "TYPE", "normal"});
    open_or_fail(uri).reset();
    EXPECT_TRUE(list_stores(uri)->front().in_use);
    EXPECT_FALSE(remove_store(list_stores(uri)->front().uri));
  }
  EXPECT_EQ(expect_blocks(*store, 0, 100), Outcome::kOk);
  store.reset();
  EXPECT_THAT(keyspace(), Not(HasSubstr("db5")));
}

// Also a program that is stopped and may go on, whose connection the server still has.
TEST(RedisFaults, AScratchStoreThatIsConnectedIsInUseHoweverOld) {
  const auto uri = uri_on(shared_port(), "/6/parent");
  auto store = open_or_fail(uri);
  (void)put_blocks(*store, 0, make_blocks(0, 100, 4096));
  move_elsewhere(6, "parent", true);
  open_or_fail(uri).reset();
  EXPECT_EQ(expect_blocks(*store, 0, 100), Outcome::kOk);
}

TEST(RedisFaults, AnIdleProgramIsHeardOfAlthoughItsConnectionsAreDropped) {
  const auto uri = uri_on(shared_port(), "/7/parent?grace_s=2");
  auto store = open_or_fail(uri);
  const auto drop = [] { (void)tell(shared_port(), {"CLIENT", "KILL", "TYPE", "normal"}); };
  for (int times = 0; times < 3; ++times) {
    drop();
    const auto before = entry_of(7, "parent").note;
    EXPECT_TRUE(await([&] { return entry_of(7, "parent").note != before; })) << before;
  }
}

// A forked child that does nothing goes on when its parent has ended.
TEST(RedisFaults, AnIdleForkedChildIsHeardOf) {
  auto store = open_or_fail(uri_on(shared_port(), "/8/parent?grace_s=2"));
  (void)put_blocks(*store, 0, make_blocks(0, 10, 4096));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    (void)store->gets_in_flight(1);  // the pager's first question in a child
    (void)!read(ends[0], &byte, 1);
    const bool is_there = expect_blocks(*store, 0, 10) == Outcome::kOk;
    store.reset();
    _exit(is_there ? 0 : 1);
  }
  close(ends[0]);
  store.reset();
  const auto before = entry_of(8, "parent").note;
  EXPECT_TRUE(await([&] { return entry_of(8, "parent").note != before; })) << before;
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(keyspace(), Not(HasSubstr("db8")));
}

TEST(RedisFaults, AProgramWhoseScratchStoreWasRemovedInErrorIsToldSo) {
  const auto uri = uri_on(shared_port(), "/9/parent?grace_s=1");
  int ends[2], told[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = open_or_fail(uri);
    (void)put_blocks(*store, 0, make_blocks(0, 10, 4096));
    (void)!write(ends[1], "o", 1);
    raise(SIGSTOP);
    Bytes page(4096);
    Get get{.block = 0, .into = page};
    const auto message = message_of(store->get({&get, 1}));
    (void)!write(told[1], message.data(), message.size());
    _exit(0);
  }
  char byte = 0;
  close(ends[1]), close(told[1]);
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
  move_elsewhere(9, "parent", false, 1);
  EXPECT_TRUE(await([&] {
    (void)tell(shared_port(), {"CLIENT", "KILL", "TYPE", "normal"});
    open_or_fail(uri_on(shared_port(), "/9/parent")).reset();
    return keyspace().find("db9") == std::string::npos;
  }));
  kill(child, SIGCONT);
  std::string message(4096, ' ');
  message.resize(static_cast<std::size_t>(std::max<ssize_t>(read(told[0], message.data(), message.size()), 0)));
  EXPECT_THAT(message, HasSubstr("longer than grace_s=1"));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ends[0]), close(told[0]);
}

}  // namespace
}  // namespace farheap::test
