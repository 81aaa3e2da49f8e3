// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The call stacks of a process's sites, with names: of the program alone, for what belongs to the allocation itself
// (operator new, containers of the C++ library, this runtime) is left out.
//
// Thread-safety: one thread uses the object.
#pragma once

#include <map>
#include <vector>

#include "code_names.hpp"
#include "profile/profile.hpp"

namespace farheap::tool {

struct SiteFrame {
  profile::CodePlace returns_to;
  std::vector<CodeName> functions;  // the innermost first: the compiler may have put several into one; at least one
};

// Of the C++ library, the runtime or allocation, and not the program's own.
[[nodiscard]] bool is_of_library(const CodeName& name);

class SiteStacks {
 public:
  // Both outlive the object.
  SiteStacks(const profile::ProcessProfile& process, CodeNames& names) : process_(process), names_(names) {}

  // The innermost frame first; empty for no site. A stack of the library alone stays whole.
  [[nodiscard]] std::vector<SiteFrame> stack(profile::SiteId site);

 private:
  const std::vector<CodeName>& names_of(profile::SiteId frame);

  const profile::ProcessProfile& process_;
  CodeNames& names_;
  std::map<profile::SiteId, std::vector<CodeName>> known_;
};

}  // namespace farheap::tool
