// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What goes where, and in which order; the contract itself is contract_test.cpp's.
#include "store/split_store.hpp"

#include <gmock/gmock.h>

#include "store/contents.hpp"
#include "store/decorator.hpp"
#include "store/heap_blocks.hpp"
#include "tests/store/store_fixture.hpp"

namespace farheap::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Writes down what it is asked to do, and refuses puts when told to.
class Witness final : public store::Decorator {
 public:
  Witness(std::string name, std::vector<std::string>& log)
      : Decorator("witness", open_or_fail("mem:")), name_(std::move(name)), log_(log) {}
  Status put(std::span<Put> batch) override {
    log_.push_back(name_ + " put " + std::to_string(batch.size()));
    if (!refuses) return inner_->put(batch);
    for (auto& entry : batch) entry.outcome = Outcome::kFailed;
    return fail(ErrorCode::kIo, "cannot put", name_, "told so");
  }
  Status sync() override {
    log_.push_back(name_ + " sync");
    return inner_->sync();
  }
  bool refuses = false;

 private:
  std::string name_;
  std::vector<std::string>& log_;
};

struct Split {
  Split() {
    auto one = std::make_unique<Witness>("pages", log);
    auto two = std::make_unique<Witness>("sync", log);
    pages = one.get(), sync = two.get();
    whole = std::move(*store::join_stores(std::move(one), std::move(two)));
  }
  std::vector<std::string> log;
  Witness* pages = nullptr;
  Witness* sync = nullptr;
  std::unique_ptr<Store> whole;
};

TEST(SplitStore, RootsLeasesAndCountersAreInSync) {
  Split split;
  constexpr std::uint64_t kLease = store::kFirstLease;
  for (std::uint64_t block : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, kLease - 1, kLease, kLease + 7}) {
    put_blocks(*split.whole, block, make_blocks(block, 1, 4096));
    EXPECT_EQ(expect_blocks(*split.whole, block, 1), Outcome::kOk);
    const bool in_sync = block < 2 || block >= kLease;
    Bytes there(4096);
    const auto number = block < kLease ? block : block - kLease + 2;
    const bool is_there =
        get_blocks(*split.sync, number, there).outcome == Outcome::kOk && there == make_blocks(block, 1, 4096);
    EXPECT_EQ(is_there, in_sync) << block;
    EXPECT_EQ(expect_blocks(*split.pages, block, 1), in_sync ? Outcome::kAbsent : Outcome::kOk) << block;
  }
  EXPECT_EQ(split.whole->add("count", 3).value(), 3);
  EXPECT_EQ(split.sync->add("count", 0).value(), 3);
  EXPECT_EQ(split.whole->usage()->blocks, 6u);
  std::vector<std::uint64_t> listed;
  for (std::uint64_t from = 0;;) {
    const auto runs = split.whole->runs_from(from);
    ASSERT_TRUE(runs);
    if (runs->empty()) break;
    for (const BlockRun& run : *runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) listed.push_back(run.first + i);
    }
    from = listed.back() + 1;
  }
  EXPECT_THAT(listed, ElementsAre(0, 1, 2, kLease - 1, kLease, kLease + 7));
  ASSERT_TRUE(split.whole->erase(0, ~std::uint64_t{0}));
  EXPECT_EQ(split.whole->usage()->blocks, 0u);
}

TEST(SplitStore, ARunOverTheBorderGoesToBoth) {
  Split split;
  const auto bytes = make_blocks(0, 5, 4096);
  EXPECT_EQ(put_blocks(*split.whole, 0, bytes).outcome, Outcome::kOk);
  EXPECT_EQ(expect_blocks(*split.whole, 0, 5), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*split.sync, 0, 2), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*split.pages, 2, 3), Outcome::kOk);
  ASSERT_TRUE(split.whole->erase(1, 2));
  EXPECT_EQ(expect_blocks(*split.whole, 0, 5), Outcome::kAbsent);
  EXPECT_EQ(expect_blocks(*split.whole, 0, 1), Outcome::kOk);
  EXPECT_EQ(expect_blocks(*split.whole, 3, 2), Outcome::kOk);
}

TEST(SplitStore, ARootIsNeverThereBeforeWhatItPointsTo) {
  Split split;
  const auto root = make_blocks(0, 1, 4096);
  const auto page = make_blocks(9, 1, 4096);
  Put batch[] = {{.block = 0, .from = root}, {.block = 9, .from = page}};
  ASSERT_TRUE(split.whole->put(batch));
  EXPECT_THAT(split.log, ElementsAre("pages put 1", "pages sync", "sync put 1"));
  split.log.clear();
  ASSERT_TRUE(split.whole->put({batch, 1}));  // nothing new in pages
  EXPECT_THAT(split.log, ElementsAre("sync put 1"));
  split.log.clear();
  ASSERT_TRUE(split.whole->put({batch + 1, 1}));
  ASSERT_TRUE(split.whole->sync());
  EXPECT_THAT(split.log, ElementsAre("pages put 1", "pages sync", "sync sync"));
}

TEST(SplitStore, ARootIsNotWrittenWhenAPageOfItsBatchFailed) {
  Split split;
  split.pages->refuses = true;
  const auto root = make_blocks(0, 1, 4096);
  const auto page = make_blocks(9, 1, 4096);
  Put batch[] = {{.block = 0, .from = root}, {.block = 9, .from = page}};
  const auto put = split.whole->put(batch);
  ASSERT_FALSE(put);
  EXPECT_THAT(put.error().why, HasSubstr("told so"));
  EXPECT_EQ(batch[0].outcome, Outcome::kFailed);
  EXPECT_EQ(batch[1].outcome, Outcome::kFailed);
  EXPECT_EQ(expect_blocks(*split.sync, 0, 1), Outcome::kAbsent);
}

TEST(SplitStore, PromisesWhatBothPromise) {
  const TemporaryFolder folder;
  const auto mixed = open_or_fail("pages=file:" + folder.path() + ",sync=mem:");
  EXPECT_FALSE(has(mixed->capabilities(), Capability::kVersions));  // a scratch file has none
  EXPECT_TRUE(has(mixed->capabilities(), Capability::kCounters));
  const auto mem = open_or_fail("sync=mem:,pages=mem:");
  EXPECT_TRUE(has(mem->capabilities(), Capability::kVersions));
  EXPECT_FALSE(has(mem->capabilities(), Capability::kAtomicBatch));
  EXPECT_EQ(mem->describe(), "pages=mem:,sync=mem:");
}

TEST(SplitStore, IsRefusedWithTheRightForm) {
  for (const std::string uri : {"pages=mem:", "sync=mem:", "pages=,sync=mem:", "pages=pages=mem:,sync=mem:,sync=mem:",
                                "sync=mem:,pages=sync=mem:,pages=mem:"}) {
    const auto opened = open_store(uri);
    ASSERT_FALSE(opened) << uri;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument) << uri;
    EXPECT_THAT(opened.error().message(), HasSubstr("pages=")) << uri;
  }
  EXPECT_FALSE(open_store("pages=mem:,sync=nowhere:"));
  EXPECT_THAT(open_store("checksum+pages=mem:,sync=mem:").error().code, ErrorCode::kInvalidArgument);
}

TEST(SplitStore, IsKeptListedAndRemovedAsOne) {
  const TemporaryFolder folder;
  const std::string pages = "file:" + folder.path() + "/pages";
  const std::string sync = "file:" + folder.path() + "/sync";
  const std::string uri = "pages=" + pages + ",sync=" + sync;
  EXPECT_FALSE(*is_store_there(uri));
  put_blocks(*open_or_fail(uri, {.lifetime = Lifetime::kKeep}), 0, make_blocks(0, 4, 4096));
  EXPECT_TRUE(*is_store_there(uri));
  EXPECT_EQ(list_stores(uri)->size(), 2u);
  ASSERT_TRUE(remove_store(sync));
  const auto half = is_store_there(uri);  // the pages hold blocks that nothing refers to
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(remove_store(uri));  // what is left of it
  EXPECT_FALSE(*is_store_there(pages));
  EXPECT_EQ(remove_store(uri).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// A heap was made in the pages of another one, and wrote over them.
TEST(SplitStore, OneOfTwoWasOpenedAndRemovedAlone) {
  const TemporaryFolder folder;
  const StoreOptions kept{.lifetime = Lifetime::kKeep};
  const std::string pages = "file:" + folder.path() + "/pages", sync = "file:" + folder.path() + "/sync";
  const std::string uri = "pages=" + pages + ",sync=" + sync;
  put_blocks(*open_or_fail(uri, kept), 5, make_blocks(5, 1, 4096));
  EXPECT_EQ(open_or_fail(uri, kept)->usage()->blocks, 1u);
  const auto alone = open_store(pages, kept);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, ErrorCode::kConflict);
  EXPECT_THAT(alone.error().message(), HasSubstr("pages=" + pages + ",sync=URI"));
  EXPECT_EQ(open_store("pages=" + sync + ",sync=" + pages, kept).error().code, ErrorCode::kConflict);
  EXPECT_EQ(remove_store(pages).error().code, ErrorCode::kConflict);
  EXPECT_EQ(expect_blocks(*open_or_fail(uri, kept), 5, 1), Outcome::kOk);
  EXPECT_TRUE(remove_store(uri));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// "One of two is missing; remove what is left", said of somebody's whole heap.
TEST(SplitStore, AWholeStoreIsNotTakenForOneOfTwo) {
  const TemporaryFolder folder;
  const StoreOptions kept{.lifetime = Lifetime::kKeep};
  const std::string whole = "file:" + folder.path() + "/whole", other = "file:" + folder.path() + "/other";
  put_blocks(*open_or_fail(whole, kept), 0, make_blocks(0, 4, 4096));
  const std::string uri = "pages=" + whole + ",sync=" + other;
  for (const auto& error : {open_store(uri, kept).error(), is_store_there(uri).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kConflict);
    EXPECT_THAT(error.message(), HasSubstr("of its own"));
    EXPECT_THAT(error.message(), testing::Not(HasSubstr("rm")));
  }
  EXPECT_EQ(expect_blocks(*open_or_fail(whole, kept), 0, 4), Outcome::kOk);
}

// Roots and pages shared their numbers, and the leases were written over.
TEST(SplitStore, TheSameStoreTwiceWasTaken) {
  const TemporaryFolder folder;
  const std::string one = "file:" + folder.path() + "/one";
  const auto opened = open_store("pages=" + one + ",sync=" + one, {.lifetime = Lifetime::kKeep});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Pairs that were made before there were marks get theirs when they are opened.
TEST(SplitStore, AnOlderPairIsMarkedWhenItIsOpened) {
  const TemporaryFolder folder;
  const StoreOptions kept{.lifetime = Lifetime::kKeep};
  const std::string pages = "file:" + folder.path() + "/pages", sync = "file:" + folder.path() + "/sync";
  put_blocks(*open_or_fail(pages, kept), 5, make_blocks(5, 1, 4096));
  put_blocks(*open_or_fail(sync, kept), 0, make_blocks(0, 2, 4096));
  const std::string uri = "pages=" + pages + ",sync=" + sync;
  EXPECT_EQ(expect_blocks(*open_or_fail(uri, kept), 5, 1), Outcome::kOk);
  EXPECT_FALSE(open_store(pages, kept));
}

}  // namespace
}  // namespace farheap::test
