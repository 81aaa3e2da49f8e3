// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When small objects are touched: the order of touches in a profile (profile/touch_order.hpp), cut into phases.
//
// Thread-safety: a pure function.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "profile/profile.hpp"

namespace farheap::plan {

// A number for each of the profile's sites that count; several may have one.
using NumberOfSite = std::map<profile::SiteId, std::uint32_t>;
// By number, the share of its touches that came in each phase. Nothing where there is one phase, or too little to tell;
// and nothing of a site that was touched a few times. All lists are of one length.
[[nodiscard]] std::map<std::uint32_t, std::vector<double>> phases_of_touches(const profile::ProcessProfile& process,
                                                                             const NumberOfSite& number_of);

}  // namespace farheap::plan
