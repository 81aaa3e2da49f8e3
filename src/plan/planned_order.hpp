// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan, for the objects that are there: in which order their pages will be used (pager/page_order.hpp).
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "pager/page_order.hpp"
#include "plan/plan.hpp"

namespace farheap::plan {

struct LiveObject {
  std::uint32_t object = 0;            // of Plan::objects
  std::uint64_t first = 0, bytes = 0;  // counted from page 0's first byte
};

[[nodiscard]] pager::PageOrder order_of(const Plan& plan, std::span<const LiveObject> objects);

}  // namespace farheap::plan
