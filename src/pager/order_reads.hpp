// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much would be read if a program kept to an order, and of the blocks that are not in use the one that is needed
// last left each time (Belady 1966): what follows an order is judged by it.
//
// Thread-safety: values.
#pragma once

#include <cstdint>
#include <vector>

#include "pager/page_order.hpp"

namespace farheap::pager {

class OrderReads {
 public:
  OrderReads() = default;  // nothing is known
  // In so much memory. Time: less than a microsecond a visit; of more than kMostVisits nothing is known.
  OrderReads(const PageOrder& order, std::uint64_t memory_pages);
  static constexpr std::size_t kMostVisits = 1 << 18;

  [[nodiscard]] bool is_known() const { return !before_.empty(); }
  [[nodiscard]] std::uint64_t memory_pages() const { return memory_pages_; }
  // Pages, from the begin until this visit. What comes once and is there for the first time is not read. Of a round all
  // may have been there before.
  [[nodiscard]] std::uint64_t until(const PageOrder& order, PageOrder::Number visit) const;

 private:
  std::uint64_t memory_pages_ = 0;
  std::vector<std::uint32_t> before_;  // blocks read before each visit that is kept, and after the last one
};

}  // namespace farheap::pager
