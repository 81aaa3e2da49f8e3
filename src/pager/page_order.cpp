// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/page_order.hpp"

#include <algorithm>
#include <numeric>

namespace farheap::pager {

namespace {
constexpr std::uint64_t kLastBlock = ~std::uint32_t{0};
}  // namespace

void PageOrder::add_use(PageNumber page) {
  if (page / kBlockPages > kLastBlock) return;
  const std::uint32_t block = block_of(page);
  const Moment moment = now_++;
  const auto [found, is_new] = latest_.try_emplace(block, static_cast<std::uint32_t>(visits_.size()));
  if (!is_new) {
    Visit& latest = visits_[found->second];
    if (moment - latest.last < gap_) {
      latest.last = moment;
      return;
    }
    found->second = static_cast<std::uint32_t>(visits_.size());
  }
  visits_.push_back({block, moment, moment, kNone, static_cast<std::uint32_t>(page % kBlockPages)});
}

void PageOrder::add_visit(const Visit& visit) { visits_.push_back(visit); }

void PageOrder::finish(Number round, Moment moments) {
  latest_ = {};
  visits_.shrink_to_fit();
  round_ = round;
  round_moments_ = moments;
  // From the last on; those of the next round first, if there is one.
  std::unordered_map<std::uint32_t, Number> next;
  if (has_round()) {
    for (Number i = visits_.size(); i-- > round_;) next[visits_[i].block] = visits_.size() + (i - round_);
  }
  for (Number i = visits_.size(); i-- > 0;) {
    const auto found = next.find(visits_[i].block);
    visits_[i].next = found == next.end() ? kNone : found->second;
    next[visits_[i].block] = i;
  }
  by_end_.resize(visits_.size());
  std::iota(by_end_.begin(), by_end_.end(), 0);
  std::ranges::stable_sort(by_end_, {}, [&](std::uint32_t visit) { return visits_[visit].last; });
}

PageOrder::Visit PageOrder::visit(Number number) const {
  const auto [at, rounds] = kept(number);
  Visit found = visits_[at];
  found.first += rounds * round_moments_;
  found.last += rounds * round_moments_;
  if (rounds != 0) found.next += rounds * (visits_.size() - round_);
  return found;
}

PageOrder::Number PageOrder::by_end(Number place) const {
  const auto [at, rounds] = kept(place);
  return by_end_[at] + rounds * (visits_.size() - (has_round() ? round_ : 0));
}

}  // namespace farheap::pager
