// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The oracle's memory is a set of moments: moment t is in it while the page that is used at t is kept for that use.
// Whatever is not needed again is not kept, and the page to evict is the last moment of the set.
#include "plan/optimum.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <unordered_map>

namespace farheap::plan {

namespace {

constexpr std::uint32_t kNever = ~std::uint32_t{0};

// A set of numbers below a bound that knows its greatest: bits, and above each 64 words of them a word that tells
// which are not zero.
class MomentSet {
 public:
  explicit MomentSet(std::uint64_t bound) {
    do {
      bound = bound / 64 + 1;
      levels_.emplace_back(bound, 0);
    } while (bound > 1);
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }

  void insert(std::uint64_t moment) {
    ++size_;
    for (auto& level : levels_) {
      level[moment / 64] |= bit(moment);
      moment /= 64;
    }
  }

  // False if it was not there.
  bool erase(std::uint64_t moment) {
    if ((levels_[0][moment / 64] & bit(moment)) == 0) return false;
    --size_;
    for (auto& level : levels_) {
      level[moment / 64] &= ~bit(moment);
      if (level[moment / 64] != 0) break;
      moment /= 64;
    }
    return true;
  }

  // Requires: not empty.
  [[nodiscard]] std::uint64_t greatest() const {
    std::uint64_t at = 0;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
      at = at * 64 + std::bit_width((*level)[at]) - 1;
    return at;
  }

 private:
  static std::uint64_t bit(std::uint64_t moment) { return std::uint64_t{1} << (moment % 64); }
  std::vector<std::vector<std::uint64_t>> levels_;
  std::uint64_t size_ = 0;
};

// For each use the next one of the same contents; kNever if they are not needed again.
std::vector<std::uint32_t> next_uses(const Uses& trace) {
  std::vector<std::uint32_t> next(trace.uses.size()), later(trace.pages, kNever);
  for (std::size_t i = trace.uses.size(); i-- > 0;) {
    const PageUse use = trace.uses[i];
    next[i] = later[use.page];
    later[use.page] = use.fresh ? kNever : static_cast<std::uint32_t>(i);
  }
  return next;
}

}  // namespace

Optimum optimum(const Uses& trace, std::uint64_t memory_pages) {
  assert(memory_pages != 0 && trace.uses.size() < kNever);
  const std::vector<std::uint32_t> next = next_uses(trace);
  std::vector<bool> dirty(trace.pages);
  MomentSet kept(trace.uses.size());
  Optimum result;
  for (std::size_t i = 0; i < trace.uses.size(); ++i) {
    const PageUse use = trace.uses[i];
    if (use.fresh) {
      dirty[use.page] = false;
    } else if (!kept.erase(i)) {
      ++result.pages_read;
    }
    while (kept.size() >= memory_pages) {
      const std::uint64_t last = kept.greatest();
      kept.erase(last);
      const std::uint32_t victim = trace.uses[last].page;
      result.pages_written += dirty[victim];
      dirty[victim] = false;
    }
    dirty[use.page] = dirty[use.page] || use.written;
    if (next[i] != kNever) kept.insert(next[i]);
  }
  return result;
}

Uses uses_of(std::span<const profile::PageTraceEntry> trace) {
  using profile::PageEvent;
  struct Known {
    std::uint32_t number;
    bool in_view;
    bool fresh_next;
    std::size_t last_use;
  };
  Uses result;
  std::unordered_map<pager::PageNumber, Known> pages;
  std::uint64_t in_view = 0;
  for (const auto& entry : trace) {
    const bool came = entry.event == PageEvent::kCame || entry.event == PageEvent::kCameFresh;
    const auto [found, is_new] = pages.try_emplace(entry.page, Known{result.pages, false, true, 0});
    Known& page = found->second;
    if (is_new && !came) {
      pages.erase(found);  // it never came: nothing is known of its uses
      continue;
    }
    result.pages += is_new;
    in_view += came - (page.in_view ? 1 : 0);
    result.most_in_view = std::max(result.most_in_view, in_view);
    page.in_view = came;
    if (came) {
      page.last_use = result.uses.size();
      result.uses.push_back({page.number, page.fresh_next || entry.event == PageEvent::kCameFresh, false});
    }
    if (entry.event == PageEvent::kLeftWritten) result.uses[page.last_use].written = true;
    page.fresh_next = entry.event == PageEvent::kDropped;
  }
  return result;
}

}  // namespace farheap::plan
