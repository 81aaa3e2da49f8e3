// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contexts of a profile as its page has them: a tree for the flame graph, and rows for its tables, both short
// enough for a page.
//
// Thread-safety: pure functions, but for CodeNames.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "code_names.hpp"
#include "page_data.hpp"
#include "profile/profile.hpp"

namespace farheap::tool {

// A list of processes; null without contexts. Each has
//
//   process, name, folded   as in contexts_json()
//   stacks                  stack_tree_json() by seconds, reads and writes
//   names                   of contexts
//   contexts                [path (names, the outermost first), entries, own seconds, seconds with all below, reads,
//                           writes], the `most` with the largest share of time or accesses, and what is left out
//   sites                   `site`, `in`, `most_by` (names), `reads`, `writes`, and bytes and objects as
//   contexts_json(),
//                           the `most` that are accessed most, and what is left out
[[nodiscard]] nlohmann::ordered_json contexts_page_json(const profile::Profile& profile, CodeNames& names,
                                                        std::size_t most = kMostRows);

}  // namespace farheap::tool
