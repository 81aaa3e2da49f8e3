// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sample of pages, whose uses are seen: what is written of it, and what is to be taken out of view again.
#include "profile/page_sampler.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "../pager/array_world.hpp"

namespace farheap::profile {
namespace {

namespace testing = pager::testing;
using pager::PageNumber;

using Entries = std::vector<PageTraceEntry>;

struct Written {
  std::uint32_t one_in_log2 = 0, window = 0, sorting = 0, detailed = 0;
  std::uint64_t pages = 0;
  Entries entries;
};

class PageSamplerTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPages = 1 << 20;
  PageSamplerTest() {
    char name[] = "/tmp/farheap-sampler-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~PageSamplerTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name = "touches") const { return folder_ + "/" + name; }
  void begin() { ASSERT_TRUE(sampler_->begin(path())); }

  Written written(const char* name = "touches") const {
    std::ifstream file(path(name), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    Written found;
    if (bytes.size() < sizeof(SampledTraceHeader)) return found;
    const auto& header = *reinterpret_cast<const SampledTraceHeader*>(bytes.data());
    EXPECT_EQ(header.magic, SampledTraceHeader::kMagic);
    found.one_in_log2 = header.one_in_log2;
    found.detailed = header.detailed;
    found.window = header.window;
    found.sorting = header.is_sorting;
    found.pages = header.pages;
    const auto* words = reinterpret_cast<const std::uint32_t*>(bytes.data() + sizeof header);
    for (std::uint32_t i = 0; i < header.words; ++i) found.entries.push_back(unpack_entry(words[i]).value());
    return found;
  }
  // The first pages of the sample as it is at the beginning.
  static std::vector<PageNumber> sampled(std::size_t count) {
    std::vector<PageNumber> pages;
    for (PageNumber page = 0; pages.size() < count; ++page) {
      if (is_sampled(page, PageSampler::kFirstOneInLog2)) pages.push_back(page);
    }
    return pages;
  }

  std::string folder_;
  std::unique_ptr<PageSampler> sampler_ = PageSampler::make(kPages).value();
};

TEST(PageSample, IsOnePageInSoManyAndSmallerOnesLieInLargerOnes) {
  std::uint64_t count[12] = {};
  constexpr std::uint64_t kPages = 1 << 18;
  for (PageNumber page = 0; page < kPages; ++page) {
    bool in_larger = true;
    for (std::uint32_t log2 = 0; log2 < 12; ++log2) {
      const bool in_this = is_sampled(page, log2);
      EXPECT_TRUE(in_larger || !in_this) << page;
      in_larger = in_this;
      count[log2] += in_this;
    }
  }
  for (std::uint32_t log2 = 0; log2 < 12; ++log2) {
    const double wanted = static_cast<double>(kPages) / static_cast<double>(1u << log2);
    EXPECT_NEAR(static_cast<double>(count[log2]), wanted, wanted * 0.2) << log2;
  }
}

TEST_F(PageSamplerTest, WritesWhatCameAndLeftOfTheSampleAlone) {
  begin();
  const auto pages = sampled(2);
  sampler_->came({0, 4096});
  sampler_->left(pages[1]);
  sampler_->left(pages[1] + 1);
  sampler_->came({pages[1], 1});
  const Written found = written();
  EXPECT_EQ(found.one_in_log2, PageSampler::kFirstOneInLog2);
  EXPECT_EQ(found.pages, 4096u);
  const auto of_second = [&](const PageTraceEntry& entry) { return entry.page == pages[1]; };
  Entries mine;
  std::ranges::copy_if(found.entries, std::back_inserter(mine), of_second);
  EXPECT_EQ(mine,
            (Entries{{pages[1], PageEvent::kCameFresh}, {pages[1], PageEvent::kLeft}, {pages[1], PageEvent::kCame}}));
  for (const auto& entry : found.entries) EXPECT_TRUE(is_sampled(entry.page, found.one_in_log2));
}

TEST_F(PageSamplerTest, WhatWasDroppedComesFreshAndIsCountedAgain) {
  begin();
  const PageNumber page = sampled(1)[0];
  sampler_->came({page, 1});
  sampler_->dropped(0, 1024);
  sampler_->dropped(0, 1024);  // once is enough
  sampler_->came({page, 1});
  EXPECT_EQ(written().entries,
            (Entries{{page, PageEvent::kCameFresh}, {page, PageEvent::kDropped}, {page, PageEvent::kCameFresh}}));
  EXPECT_EQ(written().pages, 2u);
}

TEST_F(PageSamplerTest, KeepsTheLastFewInViewAndNamesTheOldest) {
  begin();
  const auto pages = sampled(PageSampler::kWindow + 3);
  for (std::size_t i = 0; i < PageSampler::kWindow; ++i) sampler_->came({pages[i], 1});
  EXPECT_FALSE(sampler_->next_due());
  for (std::size_t i = PageSampler::kWindow; i < pages.size(); ++i) sampler_->came({pages[i], 1});
  sampler_->left(pages[1]);  // for another reason: its turn is over
  EXPECT_EQ(sampler_->next_due(), pages[0]);
  sampler_->left(pages[0]);
  EXPECT_EQ(sampler_->next_due(), pages[2]);
  sampler_->not_now(pages[2]);
  EXPECT_EQ(sampler_->next_due(), pages[3]);
  EXPECT_FALSE(sampler_->next_due());
}

TEST_F(PageSamplerTest, TakesFewerWhereThereIsMuchToSee) {
  begin();
  const auto pages = sampled(256);
  for (int round = 0; round < 40; ++round) {
    for (const PageNumber page : pages) {
      sampler_->came({page, 1});
      sampler_->left(page);
    }
  }
  const Written found = written();
  EXPECT_GT(found.one_in_log2, PageSampler::kFirstOneInLog2);
  EXPECT_EQ(found.sorting, 0u);
  EXPECT_GT(found.detailed, 6000u) << "the beginning is not there in detail";
  EXPECT_LT(found.detailed, found.entries.size());
  std::uint32_t only_in_the_first = 0;
  for (std::uint32_t i = 0; i < found.entries.size(); ++i) {
    const bool is_in_last = is_sampled(found.entries[i].page, found.one_in_log2);
    EXPECT_TRUE(is_in_last || i < found.detailed);
    only_in_the_first += is_in_last ? 0 : 1;
  }
  EXPECT_GT(only_in_the_first, found.detailed / 4);
}

// How often objects are touched was not seen any more where the sample had become so small that all of it is in view.
TEST_F(PageSamplerTest, PagesThatLeftTheSampleAreStillTakenOutOfViewInTurns) {
  begin();
  const auto pages = sampled(256);
  for (int round = 0; round < 80; ++round) {
    for (const PageNumber page : pages) {
      sampler_->came({page, 1});
      sampler_->left(page);
    }
  }
  for (const PageNumber page : pages) sampler_->came({page, 1});
  sampler_->left(pages[0]);
  const Written before = written();
  std::set<PageNumber> due;
  std::size_t of_sample = 0;
  while (const auto page = sampler_->next_due()) {
    EXPECT_TRUE(due.insert(*page).second) << "it did not come again";
    sampler_->left(*page);
    of_sample += is_sampled(*page, before.one_in_log2) ? 1 : 0;
  }
  EXPECT_GT(due.size(), of_sample + 16) << "there are no probes";
  EXPECT_FALSE(due.contains(pages[0])) << "it left for another reason";
  const auto probe = std::ranges::find_if(due, [&](PageNumber page) { return !is_sampled(page, before.one_in_log2); });
  sampler_->came({*probe, 1});
  const Written after = written();
  for (std::size_t i = before.entries.size(); i < after.entries.size(); ++i) {
    EXPECT_TRUE(is_sampled(after.entries[i].page, before.one_in_log2)) << "probes are not in the trace";
  }
}

// The sample is small then, and of its pages none leaves for another reason.
std::vector<PageNumber> make_the_sample_small(PageSampler& sampler, const std::vector<PageNumber>& pages,
                                              int rounds = 80) {
  for (int round = 0; round < rounds; ++round) {
    for (const PageNumber page : pages) {
      sampler.came({page, 1});
      sampler.left(page);
    }
  }
  std::vector<PageNumber> others;
  const std::uint32_t log2 = PageSampler::kFirstOneInLog2 + 1;
  std::ranges::copy_if(pages, std::back_inserter(others), [&](PageNumber page) { return !is_sampled(page, log2); });
  return others;
}

TEST_F(PageSamplerTest, AProbeThatCannotBeTakenOutComesAgain) {
  begin();
  const auto others = make_the_sample_small(*sampler_, sampled(256));
  for (std::size_t i = 0; i < 2 * PageSampler::kWindow; ++i) sampler_->came({others[i], 1});
  const auto due = sampler_->next_due();
  ASSERT_TRUE(due.has_value());
  sampler_->not_now(*due);
  std::set<PageNumber> later;
  for (int i = 0; i < 20; ++i) {
    const auto one = sampler_->next_due();
    if (!one) break;
    later.insert(*one);
    sampler_->not_now(*one);
  }
  EXPECT_TRUE(later.contains(*due));
}

// Each time that a page was dropped and came again it stood among the probes once more, until these seemed too many.
TEST_F(PageSamplerTest, PagesThatAreDroppedAndComeAgainAreProbesOnce) {
  begin();
  const auto others = make_the_sample_small(*sampler_, sampled(256));
  for (int i = 0; i < 5'000; ++i) {
    for (std::size_t k = 0; k < 4; ++k) sampler_->came({others[k], 1});
    for (std::size_t k = 0; k < 4; ++k) sampler_->dropped(others[k], 1);
  }
  EXPECT_FALSE(sampler_->next_due()) << "four are fewer than stay in view";
  for (std::size_t i = 0; i < 2 * PageSampler::kWindow; ++i) sampler_->came({others[i], 1});
  EXPECT_TRUE(sampler_->next_due()) << "there are no probes any more";
}

TEST_F(PageSamplerTest, WhatIsRefusedDoesNotKeepProbesFromTheirTurn) {
  begin();
  const auto pages = sampled(2'048);
  const auto others = make_the_sample_small(*sampler_, pages, 4);
  const std::uint32_t log2 = written().one_in_log2;
  std::size_t in_sample = 0;
  for (const PageNumber page : pages) {
    if (is_sampled(page, log2) && in_sample < PageSampler::kWindow + 4) sampler_->came({page, 1}), ++in_sample;
  }
  ASSERT_GT(in_sample, PageSampler::kWindow) << "nothing is refused";
  for (std::size_t i = 0; i < 4 * PageSampler::kWindow; ++i) sampler_->came({others[i], 1});
  int probes = 0;
  for (int i = 0; i < 8; ++i) {
    const auto due = sampler_->next_due();
    ASSERT_TRUE(due.has_value());
    if (is_sampled(*due, log2)) {
      sampler_->not_now(*due);
    } else {
      ++probes;
    }
  }
  EXPECT_GE(probes, 3);
}

TEST_F(PageSamplerTest, OfVeryManyPagesFewAreProbes) {
  begin();
  const auto pages = sampled(1 << 13);
  (void)make_the_sample_small(*sampler_, pages);
  for (const PageNumber page : pages) sampler_->came({page, 1});
  std::set<PageNumber> due;
  while (const auto page = sampler_->next_due()) due.insert(*page);
  const std::uint32_t log2 = written().one_in_log2;
  EXPECT_GT(std::ranges::count_if(due, [&](PageNumber page) { return !is_sampled(page, log2); }), 16);
  EXPECT_LT(due.size(), pages.size() / 4);
}

TEST_F(PageSamplerTest, NeverWritesMoreThanThereIsRoom) {
  begin();
  const auto pages = sampled(1 << 13);
  // First touches do not count as much to see, so the room fills up.
  for (int round = 0; round < 80; ++round) {
    for (const PageNumber page : pages) {
      sampler_->came({page, 1});
      sampler_->dropped(page, 1);
    }
  }
  const Written found = written();
  EXPECT_GT(found.one_in_log2, PageSampler::kFirstOneInLog2);
  EXPECT_LE(found.entries.size(), PageSampler::kRoomWords);
  EXPECT_GT(found.entries.size(), PageSampler::kRoomWords / 4);
}

TEST_F(PageSamplerTest, WritesNothingBeforeItBeganNorWhereThereIsNoFolder) {
  sampler_->came({0, 4096});
  sampler_->left(0);
  sampler_->dropped(0, 100);
  EXPECT_FALSE(sampler_->next_due());
  EXPECT_FALSE(sampler_->begin("/no/such/folder/touches"));
  sampler_->came({0, 4096});
  EXPECT_FALSE(sampler_->next_due());
}

TEST_F(PageSamplerTest, EndsAndBeginsAnew) {
  begin();
  const auto pages = sampled(256);
  for (int round = 0; round < 40; ++round) {  // so much that fewer are taken
    for (const PageNumber page : pages) {
      sampler_->came({page, 1});
      sampler_->left(page);
    }
  }
  const std::size_t before = written().entries.size();
  sampler_->end();
  sampler_->came({0, 4096});
  sampler_->left(pages[0]);
  sampler_->dropped(0, 4096);
  EXPECT_FALSE(sampler_->next_due());
  EXPECT_EQ(written().entries.size(), before);
  EXPECT_FALSE(sampler_->begin(path())) << "the file is there";
  ASSERT_TRUE(sampler_->begin(path("anew")));
  sampler_->left(pages[1]);  // it was in view before anybody looked
  sampler_->came({pages[0], 1});
  const Written found = written("anew");
  EXPECT_EQ(found.entries, (Entries{{pages[0], PageEvent::kCameFresh}}));
  EXPECT_EQ(found.one_in_log2, PageSampler::kFirstOneInLog2);
  EXPECT_EQ(found.detailed, 0u);
  EXPECT_EQ(found.pages, 1u);
  EXPECT_EQ(written().entries.size(), before);
}

TEST_F(PageSamplerTest, InAForkedChildWritesToItsOwnFile) {
  begin();
  const PageNumber page = sampled(1)[0];
  sampler_->came({page, 1});
  const pid_t child = fork();
  if (child == 0) {
    sampler_->stop_in_child();
    if (!sampler_->begin(path("child"))) _exit(1);
    sampler_->left(page);
    sampler_->came({page, 1});
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(written().entries, (Entries{{page, PageEvent::kCameFresh}}));
  EXPECT_EQ(written("child").entries, (Entries{{page, PageEvent::kCameFresh}})) << "what the parent saw is not its own";
}

// A handler waits for the sampler's lock: who drops pages for the program must hold it only while nothing leaves.
TEST_F(PageSamplerTest, HearsOfWhatIsDroppedThroughThePager) {
  begin();
  const PageNumber page = sampled(1)[0];
  testing::ArrayView inner(4096);
  SampledView view(inner, *sampler_);
  testing::MapBacking backing({}, 1);
  testing::FixedBudget budget(256);
  base::RunCounters counters;
  const auto paging =
      pager::Pager::make(view, backing, budget, counters, {.capacity_pages = 4096, .read_ahead_pages = 0}).value();
  std::vector<testing::PageBytes> buffer(512);
  const auto write = [&](PageNumber at) {
    while (inner.touch(at, [](testing::PageBytes& bytes) { bytes.fill(std::byte{1}); })) {
      paging->fault(at, true, buffer[0].data());
      for (int i = 0; i < 100 && paging->evict_once() == pager::Pager::Evicted::kWorked; ++i) continue;
    }
  };
  const auto last_of_page = [&] {
    std::optional<PageEvent> last;
    for (const auto& entry : written().entries) {
      if (entry.page == page) last = entry.event;
    }
    return last;
  };
  write(page);
  EXPECT_EQ(last_of_page(), PageEvent::kCameFresh);
  for (PageNumber other = 2048; other < 4096; ++other) write(other);
  ASSERT_EQ(paging->state(page), pager::PageState::kStored);
  EXPECT_EQ(last_of_page(), PageEvent::kLeft);
  paging->discard(page, 1);
  EXPECT_EQ(last_of_page(), PageEvent::kDropped);
  write(page);
  EXPECT_EQ(last_of_page(), PageEvent::kCameFresh);
  ASSERT_TRUE(paging->watch(page));
  paging->discard(page, 1);  // out of view, in memory
  EXPECT_EQ(last_of_page(), PageEvent::kDropped);
}

}  // namespace
}  // namespace farheap::profile
