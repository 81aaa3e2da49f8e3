// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An order source knows in which order pages will be used, and learns more of it while the program runs, as a plan
// does.
//
// Thread-safety: one thread of the runtime calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clock.hpp"
#include "pager/page_order.hpp"

namespace farheap::pager {

// How it stands with the order that the pager was told last.
enum class OrderState : std::uint8_t {
  kNone,       // there is none
  kKept,       // the program keeps to it, or it is too early to tell
  kLeft,       // it has kept to it, and does other things by now
  kNeverKept,  // it does other things than the order says
  kGivenUp,    // as kLeft or kNeverKept, and the order costs more than it saves
};

class OrderSource {
 public:
  OrderSource() = default;
  OrderSource(const OrderSource&) = delete;
  OrderSource& operator=(const OrderSource&) = delete;
  virtual ~OrderSource() = default;

  // As it is known now; nullptr: nothing is.
  [[nodiscard]] virtual std::shared_ptr<const PageOrder> order() = 0;
  // The program has used something that it knows of.
  [[nodiscard]] virtual bool is_met() const { return true; }
  // Returns when order() may have another answer, or, with false, after so long.
  virtual bool wait_for_change(base::Clock::duration at_most) = 0;
  // Which part of the program the last order() is of: another number, another part.
  [[nodiscard]] virtual std::size_t part() const { return 0; }
  // The program does not keep to the last order(). Whether order() has that of another part from now on.
  [[nodiscard]] virtual bool left(OrderState) { return false; }
};

}  // namespace farheap::pager
