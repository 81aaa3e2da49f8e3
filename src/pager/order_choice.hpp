// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of the orders that are known is expected. What the program says itself goes before what its plan says, until it
// takes that back, has been through it, or does not keep to it. A plan that was given up is not believed again; a
// program that says a new order is.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "pager/page_order.hpp"

namespace farheap::pager {

enum class OrderFrom : std::uint8_t {
  kPlan,       // the one that it said before, if any, for the objects that are there now
  kNextPhase,  // of a plan, for another part of the program than the one before
  kProgram,
};

class OrderChoice {
 public:
  using Order = std::shared_ptr<const PageOrder>;

  // Gives back what was said before, for the caller to free without the mutex. nullptr: none is known any more.
  [[nodiscard]] Order say(Order order, OrderFrom from) {
    if (from != OrderFrom::kPlan) of(from).is_given_up = false;
    return std::exchange(of(from).order, std::move(order));
  }
  void give_up(OrderFrom from) { of(from).is_given_up = true; }
  [[nodiscard]] bool has(OrderFrom from) const { return of(from).order != nullptr; }
  [[nodiscard]] bool is_given_up(OrderFrom from) const { return of(from).is_given_up; }

  struct Chosen {
    Order order;  // nullptr: none
    OrderFrom from = OrderFrom::kPlan;
  };
  [[nodiscard]] Chosen chosen() const {
    for (const OrderFrom from : {OrderFrom::kProgram, OrderFrom::kPlan}) {
      if (of(from).order && !of(from).is_given_up) return {of(from).order, from};
    }
    return {};
  }

 private:
  struct Said {
    Order order;
    bool is_given_up = false;
  };
  [[nodiscard]] Said& of(OrderFrom from) { return said_[from == OrderFrom::kProgram ? 1 : 0]; }
  [[nodiscard]] const Said& of(OrderFrom from) const { return said_[from == OrderFrom::kProgram ? 1 : 0]; }

  std::array<Said, 2> said_;
};

}  // namespace farheap::pager
