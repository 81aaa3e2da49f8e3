// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan in words: what is done once and what again and again, how each large object is used meanwhile, and how much
// there is to gain by knowing it.
//
// Thread-safety: pure functions, but for the debugging information that `names` reads.
#pragma once

#include <string>

#include "code_names.hpp"
#include "plan/candidates.hpp"
#include "plan/plan.hpp"

namespace farheap::tool {

[[nodiscard]] std::string plan_text(const plan::Plan& plan, CodeNames& names);
// A sentence for each level of memory says what the plan saves there. Without enough pages in the sample there is none.
[[nodiscard]] std::string savings_text(const plan::PlanScore& score);
// The plan's cost beside that of the other candidates, and what it saves.
[[nodiscard]] std::string score_text(const plan::PlanScore& score);

}  // namespace farheap::tool
