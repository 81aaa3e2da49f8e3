// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/order_reads.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace farheap::pager {

OrderReads::OrderReads(const PageOrder& order, std::uint64_t memory_pages) : memory_pages_(memory_pages) {
  const std::size_t kept = order.visits().size();
  if (kept == 0 || kept > kMostVisits) return;
  const std::size_t round = order.has_round() ? kept - order.round() : 0;
  const std::uint64_t room = std::max<std::uint64_t>(memory_pages / PageOrder::kBlockPages, 1);
  std::unordered_set<std::uint32_t> known;                          // was there once
  std::unordered_map<std::uint32_t, PageOrder::Number> in_use;      // by block: its latest visit, which goes on
  std::set<std::pair<PageOrder::Number, std::uint32_t>> may_leave;  // by next visit; they are there, too
  PageOrder::Number ended = 0;                                      // of by_end()
  std::uint32_t reads = 0;
  const auto hold = [&](std::uint64_t blocks) {  // no more than these, but for those in use
    while (!may_leave.empty() && may_leave.size() + in_use.size() > blocks) may_leave.erase(std::prev(may_leave.end()));
  };
  const auto end_before = [&](PageOrder::Moment moment) {
    for (; order.has(ended); ++ended) {
      const PageOrder::Number number = order.by_end(ended);
      const PageOrder::Visit visit = order.visit(number);
      if (visit.last >= moment) return;
      const auto found = in_use.find(visit.block);
      if (found == in_use.end() || found->second != number) continue;
      in_use.erase(found);
      may_leave.emplace(visit.next, visit.block);
      hold(room);
    }
  };
  const auto visit_all = [&](PageOrder::Number from, PageOrder::Number end) {
    for (PageOrder::Number number = from; number < end; ++number) {
      before_.push_back(reads);
      const PageOrder::Visit visit = order.visit(number);
      end_before(visit.first);
      const bool is_there = may_leave.erase({number, visit.block}) != 0 || in_use.contains(visit.block);
      if (!is_there && !known.insert(visit.block).second) ++reads;
      if (!is_there) hold(room - 1);
      in_use[visit.block] = number;
    }
  };
  before_.reserve(kept + 1);
  visit_all(0, kept);
  if (round != 0) {
    // The first one found memory as what comes once had left it. All others are as the second.
    reads = before_[order.round()];
    before_.resize(order.round());
    visit_all(kept, kept + round);
  }
  before_.push_back(reads);
}

std::uint64_t OrderReads::until(const PageOrder& order, PageOrder::Number visit) const {
  if (!is_known()) return 0;
  const std::size_t kept = order.visits().size();
  std::uint64_t blocks = 0;
  if (visit <= kept) {
    blocks = before_[visit];
  } else if (order.has_round()) {
    const std::size_t round = kept - order.round();
    const std::uint64_t of_one = before_[kept] - before_[order.round()];
    blocks = before_[order.round() + (visit - kept) % round] + ((visit - kept) / round + 1) * of_one;
  } else {
    blocks = before_[kept];
  }
  return blocks * PageOrder::kBlockPages;
}

}  // namespace farheap::pager
