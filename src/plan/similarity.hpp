// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How alike two contexts use memory (seed 001, "Object similarity algorithm" and "Hotness similarity algorithm").
//
// Thread-safety: pure functions.
#pragma once

#include "profile/access_counts.hpp"

namespace farheap::plan {

// The share of sites that both access, in per cent of those that at least one accesses: 0 to 100. Two contexts that
// access nothing are alike: 100.
[[nodiscard]] double object_similarity(const profile::AccessCounts& a, const profile::AccessCounts& b);

// How near the counts of the sites are that both access: 1 over the mean of |A - B| / (A + B). At least 1; infinite
// where all counts are equal, and where both access nothing. 0 if they share no site.
//
// The seed divides by zero for equal counts, and its formula lacks a pair of brackets: its example, which comes to 9.9,
// is 1 / (sum / number), not 1 / sum / number. With average (A + B) / 2 its `diff` is |A - B| / 2, and diff / average
// is |A - B| / (A + B).
[[nodiscard]] double hotness_similarity(const profile::AccessCounts& a, const profile::AccessCounts& b);

}  // namespace farheap::plan
