// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sites of a plan's regions are named by as few frames as tell them from those of other regions, and of none. A stack
// is not looked at farther than that. Sites that have the same name then are one.
//
// Thread-safety: a pure function.
#pragma once

#include <functional>
#include <span>

#include "plan/plan.hpp"

namespace farheap::plan {

// `names`: of all sites, whole. The plan's regions have numbers of these, and get numbers of Plan::sites, which new
// ones join. A site that is not known (`is_known`) is no reason for more frames, and joins those that begin alike.
void name_sites_of_regions(std::span<const SiteName> names, const std::function<bool(std::uint32_t)>& is_known,
                           Plan& plan);

}  // namespace farheap::plan
