// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context tree of a profile (profile/contexts.hpp) in the forms that are shown.
//
// Thread-safety: pure functions, but for CodeNames.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "code_names.hpp"
#include "profile/profile.hpp"

namespace farheap::tool {

[[nodiscard]] bool has_contexts(const profile::Profile& profile);
// Nothing else is in it: the program counted for itself, outside of `farheap record`.
[[nodiscard]] bool has_only_contexts(const profile::Profile& profile);

// "Its 1204 contexts took 542.2 ms, and made 42 reads and 7 writes: all were counted."
[[nodiscard]] std::string contexts_summary(const profile::Profile& profile);
// For people: the tree, the longest-taking first, and which sites its contexts access most. Empty without contexts.
[[nodiscard]] std::string contexts_text(const profile::Profile& profile, CodeNames& names);
// docs/formats.md, "A profile": what `contexts` is.
[[nodiscard]] nlohmann::ordered_json contexts_json(const profile::Profile& profile, CodeNames& names);

}  // namespace farheap::tool
