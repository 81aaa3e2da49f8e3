// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/run_allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "base/units.hpp"

namespace farheap::segment {
namespace {

using base::kPageBytes;
using base::kTiB;

std::byte* at_address(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }
std::byte* const kBase = at_address(std::uintptr_t{1} << 44);  // never touched

TEST(RunAllocator, GivesAllOfTheRangeAndNoMore) {
  RunAllocator runs(kBase, kTiB);
  EXPECT_EQ(runs.obtain(kTiB + kPageBytes, kPageBytes), nullptr);
  EXPECT_EQ(runs.obtain(kTiB, kPageBytes), kBase);
  EXPECT_EQ(runs.free_bytes(), 0u);
  EXPECT_EQ(runs.obtain(kPageBytes, kPageBytes), nullptr);
  runs.give_back(kBase, kTiB);
  EXPECT_EQ(runs.free_run_count(), 1u);
  EXPECT_EQ(runs.largest_free_run(), kTiB);
}

TEST(RunAllocator, AlignsAndUsesTheGapsItLeaves) {
  RunAllocator runs(kBase + kPageBytes, 16 * base::kMiB);
  std::byte* aligned = runs.obtain(base::kHugePageBytes, base::kHugePageBytes);
  ASSERT_NE(aligned, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % base::kHugePageBytes, 0u);
  EXPECT_EQ(runs.obtain(kPageBytes, kPageBytes), kBase + kPageBytes);
  EXPECT_EQ(runs.obtain(kPageBytes, 64 * base::kMiB), nullptr);
}

// The only run that fits a large alignment is smaller than bytes + alignment.
TEST(RunAllocator, FindsAnAlignedPlaceInATightRun) {
  constexpr std::size_t kHuge = base::kHugePageBytes;
  RunAllocator runs(kBase, 32 * kHuge);
  ASSERT_EQ(runs.obtain(32 * kHuge, kPageBytes), kBase);
  for (int i = 0; i < 15; ++i) runs.give_back(kBase + 2 * i * kHuge + kPageBytes, kHuge);  // large enough, unaligned
  runs.give_back(kBase + 31 * kHuge, kHuge);
  EXPECT_EQ(runs.obtain(kHuge, kHuge), kBase + 31 * kHuge);
  EXPECT_EQ(runs.obtain(kHuge, kHuge), nullptr);
}

TEST(RunAllocator, ExtendsInPlaceOnlyIntoFreeSpace) {
  RunAllocator runs(kBase, 8 * kPageBytes);
  std::byte* first = runs.obtain(2 * kPageBytes, kPageBytes);
  std::byte* second = runs.obtain(2 * kPageBytes, kPageBytes);
  ASSERT_EQ(second, first + 2 * kPageBytes);
  EXPECT_FALSE(runs.extend(first, 2 * kPageBytes, 3 * kPageBytes));
  EXPECT_TRUE(runs.extend(second, 2 * kPageBytes, 6 * kPageBytes));
  EXPECT_FALSE(runs.extend(second, 6 * kPageBytes, 7 * kPageBytes)) << "the range ends here";
  EXPECT_EQ(runs.free_bytes(), 0u);
}

TEST(RunAllocator, TakesGivenAddresses) {
  RunAllocator runs(kBase, 8 * kPageBytes);
  EXPECT_TRUE(runs.obtain_at(kBase + 3 * kPageBytes, 2 * kPageBytes));
  EXPECT_FALSE(runs.obtain_at(kBase + 4 * kPageBytes, 2 * kPageBytes));
  EXPECT_FALSE(runs.obtain_at(kBase - kPageBytes, kPageBytes));
  EXPECT_FALSE(runs.obtain_at(kBase + 7 * kPageBytes, 2 * kPageBytes));
  EXPECT_EQ(runs.free_bytes(), 6 * kPageBytes);
}

TEST(RunAllocatorDeathTest, CatchesWhatIsGivenBackTwiceOrNeverWasThere) {
  RunAllocator runs(kBase, 8 * kPageBytes);
  std::byte* run = runs.obtain(4 * kPageBytes, kPageBytes);
  runs.give_back(run + kPageBytes, kPageBytes);
  EXPECT_DEATH(runs.give_back(run, 2 * kPageBytes), "free already");
  EXPECT_DEATH(runs.give_back(run + kPageBytes, kPageBytes), "free already");
  EXPECT_DEATH(runs.give_back(kBase + 8 * kPageBytes, kPageBytes), "outside of the range");
  EXPECT_DEATH(runs.give_back(kBase - kPageBytes, kPageBytes), "outside of the range");
}

// A model that knows nothing but a flag for each page.
class Model {
 public:
  explicit Model(std::size_t pages) : taken_(pages, false) {}
  [[nodiscard]] bool all(std::size_t page, std::size_t count, bool taken) const {
    return page + count <= taken_.size() &&
           std::all_of(taken_.begin() + static_cast<long>(page), taken_.begin() + static_cast<long>(page + count),
                       [&](bool is) { return is == taken; });
  }
  [[nodiscard]] bool room(std::size_t count, std::size_t alignment_pages) const {
    for (std::size_t page = 0; page + count <= taken_.size(); page += alignment_pages) {
      if (all(page, count, false)) return true;
    }
    return false;
  }
  void set(std::size_t page, std::size_t count, bool taken) {
    std::fill_n(taken_.begin() + static_cast<long>(page), count, taken);
  }
  [[nodiscard]] std::size_t free_pages() const {
    return static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), false));
  }
  [[nodiscard]] std::size_t free_runs() const {
    std::size_t runs = 0;
    for (std::size_t i = 0; i < taken_.size(); ++i) runs += !taken_[i] && (i == 0 || taken_[i - 1]);
    return runs;
  }

 private:
  std::vector<bool> taken_;
};

struct Held {
  std::size_t page;
  std::size_t count;
};

class RunAllocatorRandom : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr std::size_t kPages = 2000;
  void obtain() {
    std::size_t count = 1 + random_() % (random_() % 8 == 0 ? 300 : 12);
    std::size_t alignment = std::size_t{1} << (random_() % 8);
    std::byte* at = runs_.obtain(count * kPageBytes, alignment * kPageBytes);
    if (at == nullptr) {
      EXPECT_FALSE(model_.room(count, alignment));
      return;
    }
    auto page = static_cast<std::size_t>(at - kBase) / kPageBytes;
    ASSERT_EQ(page % alignment, 0u);
    ASSERT_TRUE(model_.all(page, count, false)) << "handed out twice";
    model_.set(page, count, true);
    held_.push_back({page, count});
  }
  void give_back_a_part() {
    std::size_t which = random_() % held_.size();
    Held run = held_[which];
    std::swap(held_[which], held_.back());
    held_.pop_back();
    std::size_t skip = random_() % 3 == 0 ? random_() % run.count : 0;
    std::size_t count = random_() % 3 == 0 ? 1 + random_() % (run.count - skip) : run.count - skip;
    runs_.give_back(kBase + (run.page + skip) * kPageBytes, count * kPageBytes);
    model_.set(run.page + skip, count, false);
    if (skip > 0) held_.push_back({run.page, skip});
    std::size_t rest = run.count - skip - count;
    if (rest > 0) held_.push_back({run.page + skip + count, rest});
  }
  void extend() {
    Held& run = held_[random_() % held_.size()];
    std::size_t more = 1 + random_() % 20;
    bool done = runs_.extend(kBase + run.page * kPageBytes, run.count * kPageBytes, (run.count + more) * kPageBytes);
    ASSERT_EQ(done, model_.all(run.page + run.count, more, false));
    if (!done) return;
    model_.set(run.page + run.count, more, true);
    run.count += more;
  }

  std::mt19937 random_{GetParam()};
  RunAllocator runs_{kBase, kPages* kPageBytes};
  Model model_{kPages};
  std::vector<Held> held_;
};

TEST_P(RunAllocatorRandom, AgreesWithAModel) {
  for (int step = 0; step < 20000; ++step) {
    unsigned what = random_() % 10;
    if (held_.empty() || what < 5) {
      obtain();
    } else if (what < 9) {
      give_back_a_part();
    } else {
      extend();
    }
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_EQ(runs_.free_bytes(), model_.free_pages() * kPageBytes);
    if (step % 100 == 0) {
      ASSERT_EQ(runs_.free_run_count(), model_.free_runs()) << "neighbours are not joined";
    }
  }
  while (!held_.empty()) give_back_a_part();
  EXPECT_EQ(runs_.free_run_count(), 1u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RunAllocatorRandom, testing::Values(1u, 2u, 3u, 4u));

TEST(RunAllocator, HoldsHundredsOfThousandsOfRuns) {
  constexpr std::size_t kRuns = 300'000;
  RunAllocator runs(kBase, kTiB);
  std::vector<std::byte*> taken(kRuns);
  for (auto& run : taken) run = runs.obtain(kPageBytes, kPageBytes);
  std::shuffle(taken.begin(), taken.end(), std::mt19937{5});
  std::set<std::byte*> kept;
  for (std::byte* run : taken) {
    if ((run - kBase) / static_cast<long>(kPageBytes) % 2 == 0) {
      kept.insert(run);
    } else {
      runs.give_back(run, kPageBytes);
    }
  }
  EXPECT_EQ(runs.free_run_count(), kRuns / 2);
  for (std::byte* run : kept) runs.give_back(run, kPageBytes);
  EXPECT_EQ(runs.free_run_count(), 1u);
  EXPECT_EQ(runs.free_bytes(), kTiB);
}

}  // namespace
}  // namespace farheap::segment
