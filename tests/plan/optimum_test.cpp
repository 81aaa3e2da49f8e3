// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Belady's optimum beside all that any policy could do, on short random traces; and what a trace becomes before.
#include "plan/optimum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "plan/lru.hpp"

namespace farheap::plan {
namespace {

using profile::PageEvent;
using profile::PageTraceEntry;

Uses random_uses(std::mt19937& random, std::uint32_t pages, std::size_t length) {
  Uses trace;
  trace.pages = pages;
  std::vector<bool> known(pages);
  for (std::size_t i = 0; i < length; ++i) {
    const std::uint32_t page = random() % pages;
    trace.uses.push_back({page, !known[page] || random() % 8 == 0, random() % 3 == 0});
    known[page] = true;
  }
  return trace;
}

// Every choice of a victim at every miss: the least reads from use `i` on with these pages in memory.
std::uint64_t least_reads(const Uses& trace, std::uint64_t memory, std::size_t i, std::uint32_t in_memory,
                          std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t>& known) {
  if (i == trace.uses.size()) return 0;
  const PageUse use = trace.uses[i];
  const std::uint32_t here = 1u << use.page;
  if ((in_memory & here) != 0) return least_reads(trace, memory, i + 1, in_memory, known);
  if (const auto found = known.find({i, in_memory}); found != known.end()) return found->second;
  std::uint64_t best = ~std::uint64_t{0};
  if (static_cast<std::uint64_t>(__builtin_popcount(in_memory)) < memory) {
    best = least_reads(trace, memory, i + 1, in_memory | here, known);
  } else {
    for (std::uint32_t victim = 1; victim <= in_memory; victim <<= 1) {
      if ((in_memory & victim) == 0) continue;
      best = std::min(best, least_reads(trace, memory, i + 1, (in_memory & ~victim) | here, known));
    }
  }
  best += use.fresh ? 0 : 1;
  return known[{i, in_memory}] = best;
}

// Belady word by word: pages in memory, and at a miss a look ahead for each of them.
Optimum looked_ahead(const Uses& trace, std::uint64_t memory) {
  const auto needed_at = [&](std::uint32_t page, std::size_t from) {
    for (std::size_t i = from; i < trace.uses.size(); ++i) {
      if (trace.uses[i].page == page) return trace.uses[i].fresh ? trace.uses.size() : i;
    }
    return trace.uses.size();
  };
  Optimum result;
  std::map<std::uint32_t, bool> in_memory;  // whether it was changed
  for (std::size_t i = 0; i < trace.uses.size(); ++i) {
    const PageUse use = trace.uses[i];
    if (use.fresh) in_memory.erase(use.page);
    if (in_memory.find(use.page) == in_memory.end()) {
      result.pages_read += !use.fresh;
      if (in_memory.size() == memory) {
        const auto victim = std::max_element(in_memory.begin(), in_memory.end(), [&](auto& a, auto& b) {
          return needed_at(a.first, i) < needed_at(b.first, i);
        });
        result.pages_written += victim->second && needed_at(victim->first, i) != trace.uses.size();
        in_memory.erase(victim);
      }
      in_memory[use.page] = false;
    }
    in_memory[use.page] |= use.written;
  }
  return result;
}

TEST(Optimum, ReadsAsLittleAsAnyPolicyCould) {
  std::mt19937 random(20);
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t pages = 2 + random() % 7;
    Uses trace = random_uses(random, pages, 1 + random() % 30);
    // Only first uses are fresh: for the others, to be in memory already is no gain, which the search does not know.
    std::vector<bool> known(pages);
    for (PageUse& use : trace.uses) {
      use.fresh = !known[use.page];
      known[use.page] = true;
    }
    for (std::uint64_t memory = 1; memory <= pages; ++memory) {
      std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> searched;
      EXPECT_EQ(optimum(trace, memory).pages_read, least_reads(trace, memory, 0, 0, searched)) << "round " << round;
    }
  }
}

TEST(Optimum, ReadsAndWritesAsBeladyWordByWord) {
  std::mt19937 random(21);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t pages = 2 + random() % 40;
    const Uses trace = random_uses(random, pages, 1 + random() % 400);
    const std::uint64_t memory = 1 + random() % pages;
    EXPECT_EQ(optimum(trace, memory), looked_ahead(trace, memory)) << "round " << round << ", memory " << memory;
  }
}

TEST(Optimum, OfASweepLongerThanAWordOfItsSet) {
  // n pages, swept r times, m of memory: an oracle keeps m - 1 of them from sweep to sweep, and one frame is passed on.
  constexpr std::uint32_t kPages = 5000, kSweeps = 60, kMemory = 3001;
  Uses trace;
  trace.pages = kPages;
  for (std::uint32_t sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::uint32_t page = 0; page < kPages; ++page) trace.uses.push_back({page, sweep == 0, true});
  }
  const auto found = optimum(trace, kMemory);
  // Each period of n - 1 uses has n - m misses (Belady, 1966); the last may be short.
  const double expected = static_cast<double>(kSweeps - 1) * kPages * (kPages - kMemory) / (kPages - 1);
  EXPECT_NEAR(static_cast<double>(found.pages_read), expected, kPages);
  EXPECT_LE(found.pages_written, found.pages_read);
  EXPECT_EQ(optimum(trace, kPages), (Optimum{0, 0}));
}

TEST(Optimum, OfThinnedTracesIsABound) {
  // Uses left out as a recording leaves them out: those of pages in a window. See optimum.hpp.
  std::mt19937 random(22);
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t pages = 8 + random() % 40, window = 1 + random() % 4;
    const std::uint64_t memory = window + 1 + random() % (pages - window);
    const Uses full = random_uses(random, pages, 400);
    Uses seen;
    seen.pages = pages;
    std::vector<std::uint32_t> in_view;
    for (const PageUse use : full.uses) {
      if (!use.fresh && std::find(in_view.begin(), in_view.end(), use.page) != in_view.end()) continue;
      std::erase(in_view, use.page);
      if (in_view.size() == window) in_view.erase(in_view.begin());
      in_view.push_back(use.page);
      seen.uses.push_back(use);
    }
    const auto truth = optimum(full, memory).pages_read;
    EXPECT_LE(optimum(seen, memory).pages_read, truth) << "round " << round;
    EXPECT_GE(optimum(seen, memory - window).pages_read, truth) << "round " << round;
  }
}

// The list of LRU word by word: the latest used at the end.
std::uint64_t listed_lru_reads(const Uses& trace, std::uint64_t memory) {
  std::vector<std::uint32_t> in_memory;
  std::uint64_t reads = 0;
  for (const PageUse use : trace.uses) {
    if (std::erase(in_memory, use.page) == 0) {
      reads += use.fresh ? 0 : 1;
      if (in_memory.size() == memory) in_memory.erase(in_memory.begin());
    }
    in_memory.push_back(use.page);
  }
  return reads;
}

TEST(Lru, ReadsAsItsListDoes) {
  std::mt19937 random(23);
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t pages = 1 + random() % 40;
    const Uses trace = random_uses(random, pages, 1 + random() % 400);
    const std::uint64_t memory = 1 + random() % (pages + 2);
    EXPECT_EQ(lru_reads(trace, memory), listed_lru_reads(trace, memory)) << "round " << round << ", memory " << memory;
  }
}

TEST(Lru, OfASweepMissesEveryPage) {
  constexpr std::uint32_t kPages = 100, kSweeps = 5;
  Uses trace;
  trace.pages = kPages;
  for (std::uint32_t sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::uint32_t page = 0; page < kPages; ++page) trace.uses.push_back({page, sweep == 0, false});
  }
  EXPECT_EQ(lru_reads(trace, kPages - 1), (kSweeps - 1) * kPages);
  EXPECT_EQ(lru_reads(trace, kPages), 0u);
}

TEST(Lru, OfThinnedTracesIsABound) {
  std::mt19937 random(24);
  for (int round = 0; round < 400; ++round) {
    const std::uint32_t pages = 8 + random() % 40, window = 1 + random() % 4;
    const std::uint64_t memory = window + 1 + random() % (pages - window);
    Uses full, seen;
    full.pages = seen.pages = pages;
    std::vector<bool> known(pages);
    std::vector<std::uint32_t> in_view;
    for (int i = 0; i < 600; ++i) {
      // The lower numbers more often: there is something to know of recency.
      const std::uint32_t page = random() % (1 + random() % pages);
      const PageUse use{page, !known[page], false};
      known[page] = true;
      full.uses.push_back(use);
      if (std::find(in_view.begin(), in_view.end(), page) != in_view.end()) continue;
      if (in_view.size() == window) in_view.erase(in_view.begin());
      in_view.push_back(page);
      seen.uses.push_back(use);
    }
    const auto truth = lru_reads(full, memory);
    EXPECT_LE(lru_reads(seen, memory + window), truth) << "round " << round;
    EXPECT_GE(lru_reads(seen, memory - window), truth) << "round " << round;
  }
}

TEST(UsesOfATrace, NamePagesAndTellWhatWasWrittenAndDropped) {
  const std::array<PageTraceEntry, 10> trace{{{900, PageEvent::kCame},  // in memory before the recording: no read
                                              {7, PageEvent::kCameFresh},
                                              {900, PageEvent::kLeftWritten},
                                              {5, PageEvent::kLeft},  // never came
                                              {7, PageEvent::kLeft},
                                              {900, PageEvent::kCame},
                                              {900, PageEvent::kDropped},
                                              {7, PageEvent::kCame},
                                              {900, PageEvent::kCame},
                                              {1000, PageEvent::kCameFresh}}};
  const Uses uses = uses_of(trace);
  const std::vector<std::array<unsigned, 3>> expected{{0, 1, 1}, {1, 1, 0}, {0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {2, 1, 0}};
  ASSERT_EQ(uses.uses.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const PageUse use = uses.uses[i];
    EXPECT_EQ((std::array<unsigned, 3>{use.page, use.fresh, use.written}), expected[i]) << i;
  }
  EXPECT_EQ(uses.pages, 3u);
  EXPECT_EQ(uses.most_in_view, 3u);
}

}  // namespace
}  // namespace farheap::plan
