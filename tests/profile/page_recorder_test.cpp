// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recording beside what a program really did: every use that a window of pages does not hide is in it, in order, and
// none that was not made; what was written is marked, and what came as zeros.
#include "profile/page_recorder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "../pager/array_world.hpp"

namespace farheap::profile {
namespace {

using pager::PageNumber;
using pager::testing::ArrayView;
using pager::testing::FixedBudget;
using pager::testing::MapBacking;
using pager::testing::PageBytes;

constexpr std::uint64_t kPages = 512;

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> bytes;
  for (std::istreambuf_iterator<char> at(in), end; at != end; ++at) bytes.push_back(static_cast<std::byte>(*at));
  return bytes;
}

class Recording : public ::testing::Test {
 protected:
  Recording() : view_(kPages), backing_({}, 1), budget_(kPages) {
    auto made = PageRecorder::make(path_, {.base_address = 0x1000, .window_pages = 80}, kPages);
    if (!made) throw std::runtime_error(made.error().message());
    recording_ = std::make_unique<PageRecording>(std::move(*made), view_, backing_, budget_, 80);
    pager::PagerOptions options;
    options.capacity_pages = kPages;
    options.block_max_pages = 1;
    options.read_ahead_pages = 0;
    pager_ =
        pager::Pager::make(recording_->view(), recording_->backing(), recording_->budget(), counters_, options).value();
  }
  ~Recording() override { unlink(path_.c_str()); }

  // True if it was in view already.
  bool use(PageNumber page, int value) {
    const auto access = [&](PageBytes& bytes) {
      if (value >= 0) bytes.fill(static_cast<std::byte>(value));
    };
    if (!view_.touch(page, access)) return true;
    pager_->fault(page, value >= 0, buffer_[0].data());
    EXPECT_FALSE(view_.touch(page, access));
    while (pager_->evict_once() == pager::Pager::Evicted::kWorked) {
    }
    return false;
  }
  std::vector<PageTraceEntry> recorded() const {
    const auto trace = read_page_trace(bytes_of(path_));
    EXPECT_TRUE(trace.has_value());
    EXPECT_EQ(trace->header.base_address, 0x1000u);
    EXPECT_EQ(trace->header.window_pages, 80u);
    return trace->entries;
  }

  const std::string path_ = ::testing::TempDir() + "recorded_pages." + std::to_string(getpid());
  ArrayView view_;
  MapBacking backing_;
  FixedBudget budget_;
  base::RunCounters counters_;
  std::unique_ptr<PageRecording> recording_;
  std::unique_ptr<pager::Pager> pager_;
  std::vector<PageBytes> buffer_{1};
};

TEST_F(Recording, HoldsEveryUseThatWasNotInViewAndWhatBecameOfIt) {
  struct Model {
    int value = 0;    // 0: zeros
    int as_left = 0;  // when it last went out of view
  };
  std::vector<Model> model(kPages);
  std::vector<PageNumber> came;
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const PageNumber page = random() % 3 == 0 ? random() % 40 : random() % kPages;
    if (random() % 64 == 0) {
      pager_->discard(page, 1);
      model[page].value = 0;
      continue;
    }
    const int value = random() % 2 == 0 ? static_cast<int>(random() % 3) : -1;
    if (!use(page, value)) came.push_back(page);
    if (value >= 0) model[page].value = value;
  }
  std::vector<PageNumber> recorded_uses;
  std::uint64_t in_view = 0, most_in_view = 0, written = 0, dropped = 0;
  std::vector<bool> seen(kPages), fresh_next(kPages, true);
  for (const PageTraceEntry& entry : recorded()) {
    switch (entry.event) {
      case PageEvent::kCameFresh:
      case PageEvent::kCame:
        recorded_uses.push_back(entry.page);
        EXPECT_FALSE(seen[entry.page]);
        EXPECT_TRUE(entry.event == PageEvent::kCameFresh || !fresh_next[entry.page]);
        seen[entry.page] = true;
        ++in_view;
        break;
      case PageEvent::kLeftWritten: ++written; [[fallthrough]];
      case PageEvent::kLeft:
        EXPECT_TRUE(seen[entry.page]);
        seen[entry.page] = fresh_next[entry.page] = false;
        --in_view;
        break;
      case PageEvent::kDropped:
        ++dropped;
        in_view -= seen[entry.page];
        seen[entry.page] = false;
        fresh_next[entry.page] = true;
        break;
      case PageEvent::kCut: FAIL();
    }
    most_in_view = std::max(most_in_view, in_view);
  }
  EXPECT_EQ(recorded_uses, came);
  EXPECT_LE(most_in_view, 81u);
  EXPECT_GT(written, 100u);
  EXPECT_GT(dropped, 100u);
  EXPECT_EQ(pager_->check(), "");
  EXPECT_EQ(view_.broken_rules, 0);
}

TEST_F(Recording, TellsPagesThatWereWrittenFromThoseThatWereNot) {
  const auto go_away = [&] {
    for (PageNumber page = 200; page < 400; ++page) use(page, 1);
  };
  use(3, 7);
  go_away();
  use(3, -1);  // only read
  go_away();
  use(3, 7);  // written, with what it had: nobody would have to write that
  go_away();
  use(3, 8);
  go_away();
  use(3, 0);  // zeros again: nobody has to keep them
  go_away();
  use(3, -1);
  std::vector<PageEvent> events;
  for (const PageTraceEntry& entry : recorded()) {
    if (entry.page == 3) events.push_back(entry.event);
  }
  using enum PageEvent;
  EXPECT_EQ(events, (std::vector<PageEvent>{kCameFresh, kLeftWritten, kCame, kLeft, kCame, kLeft, kCame, kLeftWritten,
                                            kCame, kLeftWritten, kCameFresh}));
}

TEST_F(Recording, OfAForkedChildIsNotThere) {
  use(1, 1);
  recording_->stop_in_child();
  use(2, 1);
  EXPECT_EQ(recorded(), (std::vector<PageTraceEntry>{{1, PageEvent::kCameFresh}}));
}

TEST_F(Recording, IsNobodyElsesToRead) {
  struct stat status{};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_FALSE(PageRecorder::make(path_, {}, kPages).has_value()) << "the file is there already";
}

TEST(PageTrace, RefusesWhatItIsNot) {
  const auto words = PageTraceHeader{}.words();
  const auto bytes = std::as_bytes(std::span(words));
  EXPECT_TRUE(read_page_trace(bytes).has_value());
  EXPECT_FALSE(read_page_trace(bytes.first(63)).has_value());
  auto newer = words;
  newer[2] = PageTraceHeader::kFormat + 1;
  const auto refused = read_page_trace(std::as_bytes(std::span(newer)));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST(PageTrace, EndsWhereNothingWasWrittenOrWhereItWasCut) {
  const auto header = PageTraceHeader{}.words();
  std::vector<std::uint32_t> words(header.begin(), header.end());
  words.insert(words.end(), {pack({kTraceablePages - 1, PageEvent::kCame}), 0, pack({5, PageEvent::kCame})});
  auto trace = read_page_trace(std::as_bytes(std::span(words)));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->entries, (std::vector<PageTraceEntry>{{kTraceablePages - 1, PageEvent::kCame}}));
  EXPECT_FALSE(trace->cut);
  words[header.size() + 1] = pack({0, PageEvent::kCut});
  trace = read_page_trace(std::as_bytes(std::span(words)));
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->entries.size(), 1u);
  EXPECT_TRUE(trace->cut);
  words[header.size() + 1] = 9;
  EXPECT_FALSE(read_page_trace(std::as_bytes(std::span(words))).has_value()) << "there is no such event";
}

}  // namespace
}  // namespace farheap::profile
