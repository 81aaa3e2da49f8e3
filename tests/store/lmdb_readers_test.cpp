// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Read transactions that are used again: what they see, what they hold of LMDB's pages and places, and forked children.
#include "store/lmdb_readers.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

using store::LmdbReaders;

class Readers : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_EQ(mdb_env_create(&env_), 0);
    ASSERT_EQ(mdb_env_set_maxreaders(env_, 64), 0);
    ASSERT_EQ(mdb_env_set_mapsize(env_, std::size_t{1} << 30), 0);  // a thread that sleeps amid a use keeps pages
    ASSERT_EQ(mdb_env_open(env_, (folder_.path() + "/data").c_str(), MDB_NOSUBDIR | MDB_NOTLS | MDB_NOSYNC, 0600), 0);
    readers_.emplace(env_, GetParam());
    put(0);
  }
  void TearDown() override {
    readers_.reset();
    mdb_env_close(env_);
  }

  void put(std::uint64_t number) {
    const LmdbReaders::Change change(*readers_);
    commit(number);
  }
  void commit(std::uint64_t number) {
    MDB_txn* txn = nullptr;
    ASSERT_EQ(mdb_txn_begin(env_, nullptr, 0, &txn), 0);
    ASSERT_EQ(mdb_dbi_open(txn, nullptr, MDB_INTEGERKEY, &dbi_), 0);
    std::vector<std::uint64_t> value(512, number);
    std::uint64_t key = 1;
    MDB_val name{sizeof key, &key};
    MDB_val bytes{value.size() * sizeof key, value.data()};
    ASSERT_EQ(mdb_put(txn, dbi_, &name, &bytes, 0), 0);
    ASSERT_EQ(mdb_txn_commit(txn), 0);
  }
  std::uint64_t get(const LmdbReaders::Reading& reading) const {
    std::uint64_t number = 1;
    MDB_val name{sizeof number, &number};
    MDB_val bytes{};
    EXPECT_EQ(mdb_get(reading.get(), dbi_, &name, &bytes), 0);
    std::memcpy(&number, bytes.mv_data, sizeof number);
    return number;
  }
  std::uint64_t get() {
    LmdbReaders::Reading reading(*readers_);
    EXPECT_EQ(reading.error(), 0);
    return get(reading);
  }
  std::size_t last_page() const {
    MDB_envinfo info{};
    EXPECT_EQ(mdb_env_info(env_, &info), 0);
    return info.me_last_pgno;
  }
  // Lines of LMDB's own list: a heading, and one for each place that is taken.
  std::size_t places() const {
    std::size_t lines = 0;
    const auto count = [](const char* text, void* to) {
      for (; *text != '\0'; ++text) *static_cast<std::size_t*>(to) += *text == '\n' ? 1 : 0;
      return 0;
    };
    EXPECT_GE(mdb_reader_list(env_, count, &lines), 0);
    return lines;
  }

  TemporaryFolder folder_;
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  std::optional<LmdbReaders> readers_;
};

TEST_P(Readers, SeeWhatWasCommittedLast) {
  for (std::uint64_t i = 1; i < 100; ++i) {
    put(i);
    EXPECT_EQ(get(), i);
    EXPECT_EQ(get(), i);
  }
  EXPECT_EQ(places(), 2u) << "a heading, and one place that is used again";
}

TEST_P(Readers, KeepTheirStateWhileTheyAreUsed) {
  std::optional<LmdbReaders::Reading> old(*readers_);
  for (std::uint64_t i = 1; i < 10; ++i) put(i);
  EXPECT_EQ(get(*old), 0u);
  EXPECT_EQ(get(), 9u);
  old.reset();
  EXPECT_EQ(get(), 9u);
}

// One that is used between the beginning of a change and its commit must not pass for current after the commit.
TEST_P(Readers, SeeACommitBeforeItsChangeHasEnded) {
  EXPECT_EQ(get(), 0u);
  {
    const LmdbReaders::Change change(*readers_);
    EXPECT_EQ(get(), 0u);
    commit(1);
    EXPECT_EQ(get(), 1u);
  }
  EXPECT_EQ(get(), 1u);
}

// More at once than there are slots, and then idle ones that nobody uses again.
TEST_P(Readers, IdleOnesDoNotKeepPages) {
  {
    std::vector<std::unique_ptr<LmdbReaders::Reading>> all;
    for (int i = 0; i < 20; ++i) {
      all.push_back(std::make_unique<LmdbReaders::Reading>(*readers_));
      ASSERT_EQ(all.back()->error(), 0);
      EXPECT_EQ(get(*all.back()), 0u);
    }
  }
  for (std::uint64_t i = 1; i < 10; ++i) put(i);
  const std::size_t before = last_page();
  for (std::uint64_t i = 1; i < 300; ++i) {
    put(i);
    EXPECT_EQ(get(), i);
  }
  EXPECT_LT(last_page(), before + 20);
}

TEST_P(Readers, AreNotUsedAgainAfterAnError) {
  {
    LmdbReaders::Reading reading(*readers_);
    ASSERT_EQ(reading.error(), 0);
    reading.distrust();
  }
  EXPECT_EQ(places(), 1u);
  EXPECT_EQ(get(), 0u);
}

// The table of readers is in memory that parent and child share.
TEST_P(Readers, AForkedChildLeavesItsParentsPlacesAlone) {
  EXPECT_EQ(get(), 0u);
  ASSERT_EQ(places(), 2u);
  const pid_t child = fork();
  if (child == 0) {
    readers_.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(places(), 2u);
  put(1);
  EXPECT_EQ(get(), 1u);
}

// No thread sees an older state than another saw before: also not for the moment between LMDB's commit and the end of
// the change.
TEST_P(Readers, NoThreadGoesBackInTime) {
  constexpr std::uint64_t kPuts = 3000;
  std::atomic<std::uint64_t> newest{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!is_over.load()) {
        const std::uint64_t least = newest.load();
        const std::uint64_t seen = get();
        ASSERT_GE(seen, least);
        for (std::uint64_t now = newest.load(); now < seen && !newest.compare_exchange_weak(now, seen);) {
        }
      }
    });
  }
  for (std::uint64_t i = 1; i <= kPuts && !HasFatalFailure(); ++i) put(i);
  is_over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(get(), kPuts);
}

INSTANTIATE_TEST_SUITE_P(Lmdb, Readers, testing::Values(true, false),
                         [](const auto& each) { return each.param ? "OnlyWriter" : "OneOfMany"; });

}  // namespace
}  // namespace farheap::test
