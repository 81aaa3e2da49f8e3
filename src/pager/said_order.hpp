// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order that a program says it will use its memory in (farheap_expect_order()), as an order of pages.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "farheap/farheap.h"
#include "pager/page_order.hpp"

namespace farheap::pager {

[[nodiscard]] inline bool begins_in(std::span<const std::byte> range, const farheap_step& step) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(step.address) - range.data()) < range.size();
}

// Of the steps that begin in `range`, whose first page is page 0; each as far as it lies there. A page is used once in
// each step that has a byte of it. nullptr: nothing is left. Takes some 200 bytes for
// each visit while it works. Requires: is_order() (public_hints.hpp).
[[nodiscard]] std::shared_ptr<const PageOrder> said_order(std::span<const std::byte> range,
                                                          std::span<const farheap_step> steps, std::size_t round);

}  // namespace farheap::pager
