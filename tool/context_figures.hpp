// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context tree of a profile (profile/contexts.hpp) in figures and names that people read.
//
// Thread-safety: pure functions, but for CodeNames.
#pragma once

#include <string>
#include <vector>

#include "code_names.hpp"
#include "profile/contexts.hpp"

namespace farheap::tool {

// The figures of a context and of all below it.
struct WholeContext {
  std::uint64_t ns = 0, reads = 0, writes = 0;
  [[nodiscard]] std::uint64_t accesses() const { return reads + writes; }
};
// By context.
[[nodiscard]] std::vector<WholeContext> whole_contexts(const profile::Contexts& contexts);

// "loop of step (kernel.cpp:75)".
[[nodiscard]] std::string context_text(const profile::Contexts& contexts, std::uint32_t context);
// The line that allocates.
[[nodiscard]] std::string counted_site_text(const profile::CountedSite& site, CodeNames& names);

// The accesses of all contexts to a site.
struct SiteAccesses {
  std::uint32_t site = 0;  // of Contexts::sites
  std::uint64_t reads = 0, writes = 0;
  std::uint32_t most_by = 0;  // the context with most accesses
  std::uint64_t most = 0;
};
// All sites, the most accessed first.
[[nodiscard]] std::vector<SiteAccesses> accesses_by_site(const profile::Contexts& contexts);

}  // namespace farheap::tool
