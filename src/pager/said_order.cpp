// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/said_order.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/units.hpp"

namespace farheap::pager {

namespace {

using base::kPageBytes;

// Uses of one block with so few others in between are one visit: small steps that go to and fro between neighbouring
// blocks would be as many visits.
constexpr PageOrder::Moment kGap = PageOrder::kBlockPages;

class Builder {
 public:
  void use(PageNumber first, PageNumber end, bool backward) {
    while (first < end) {
      const PageNumber at = backward ? end - 1 : first;
      const PageNumber block = at / PageOrder::kBlockPages;
      const PageNumber from = std::max(first, block * PageOrder::kBlockPages);
      const PageNumber to = std::min(end, (block + 1) * PageOrder::kBlockPages);
      use_block(static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(at % PageOrder::kBlockPages), to - from);
      (backward ? end : first) = backward ? from : to;
    }
  }
  void begin_round() {
    round_ = visits_.size();
    round_begins_ = now_;
    latest_.clear();
  }
  [[nodiscard]] std::shared_ptr<const PageOrder> order() const {
    if (visits_.empty()) return nullptr;
    auto made = std::make_shared<PageOrder>(kGap);
    for (const PageOrder::Visit& visit : visits_) made->add_visit(visit);
    const bool has_round = round_ < visits_.size();
    made->finish(has_round ? round_ : PageOrder::kNone, has_round ? now_ - round_begins_ : 0);
    return made;
  }

 private:
  void use_block(std::uint32_t block, std::uint32_t first_page, PageOrder::Moment pages) {
    const PageOrder::Moment first = now_;
    now_ += pages;
    const auto [found, is_new] = latest_.try_emplace(block, visits_.size());
    if (!is_new) {
      PageOrder::Visit& latest = visits_[found->second];
      if (first - latest.last < kGap) {
        latest.last = now_ - 1;
        return;
      }
      found->second = visits_.size();
    }
    visits_.push_back({.block = block, .first = first, .last = now_ - 1, .first_page = first_page});
  }

  std::vector<PageOrder::Visit> visits_;
  std::unordered_map<std::uint32_t, std::size_t> latest_;  // by block
  PageOrder::Moment now_ = 0, round_begins_ = 0;
  PageOrder::Number round_ = PageOrder::kNone;
};

}  // namespace

std::shared_ptr<const PageOrder> said_order(std::span<const std::byte> range, std::span<const farheap_step> steps,
                                            std::size_t round) {
  Builder builder;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i == round) builder.begin_round();
    const auto [address, bytes, way] = steps[i];
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - range.data());
    if (offset >= range.size() || bytes == 0) continue;
    const std::size_t end = offset + std::min(bytes, range.size() - offset);
    builder.use(offset / kPageBytes, base::pages_for(end), way == FARHEAP_BACKWARD);
  }
  return builder.order();
}

}  // namespace farheap::pager
