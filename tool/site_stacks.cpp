// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "site_stacks.hpp"

#include <algorithm>
#include <string>

namespace farheap::tool {

namespace {

// "char*& std::vector<char*>::emplace_back<char*>" is of std: a template's name begins with what it returns.
bool is_of_std(const std::string& function) {
  const std::string head = function.substr(0, function.find('<'));
  const std::string qualified = head.substr(head.rfind(' ') + 1);
  return qualified.starts_with("std::") || qualified.starts_with("__gnu_cxx::");
}

}  // namespace

bool is_of_library(const CodeName& name) {
  return name.file.find("libfarheap-preload") != std::string::npos || is_of_std(name.function) ||
         name.function.starts_with("operator new") || name.function == "xmalloc" || name.function == "xcalloc" ||
         name.function == "xrealloc";
}

std::vector<SiteFrame> SiteStacks::stack(profile::SiteId site) {
  std::vector<SiteFrame> frames;
  for (; site != 0; site = process_.frames[site].inner) {
    frames.push_back({process_.frames[site].returns_to, names_of(site)});
  }
  std::ranges::reverse(frames);
  const auto is_own = [](const CodeName& name) { return !is_of_library(name); };
  const auto first = std::ranges::find_if(
      frames, [&](const SiteFrame& frame) { return std::ranges::any_of(frame.functions, is_own); });
  if (first == frames.end()) return frames;
  first->functions.erase(first->functions.begin(), std::ranges::find_if(first->functions, is_own));
  frames.erase(frames.begin(), first);
  return frames;
}

const std::vector<CodeName>& SiteStacks::names_of(profile::SiteId frame) {
  const auto [found, is_new] = known_.try_emplace(frame);
  if (is_new) found->second = names_.call(process_.frames[frame].returns_to);
  return found->second;
}

}  // namespace farheap::tool
