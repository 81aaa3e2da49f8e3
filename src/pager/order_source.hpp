// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An order source knows in which order pages will be used, and learns more of it while the program runs, as a plan
// does.
//
// Thread-safety: one thread of the runtime calls it.
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "pager/page_order.hpp"

namespace farheap::pager {

class OrderSource {
 public:
  OrderSource() = default;
  OrderSource(const OrderSource&) = delete;
  OrderSource& operator=(const OrderSource&) = delete;
  virtual ~OrderSource() = default;

  // As it is known now; nullptr: nothing is.
  [[nodiscard]] virtual std::shared_ptr<const PageOrder> order() = 0;
  // Returns when order() may have another answer, or, with false, after so long.
  virtual bool wait_for_change(base::Clock::duration at_most) = 0;
};

}  // namespace farheap::pager
