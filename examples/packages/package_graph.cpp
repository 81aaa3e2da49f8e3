// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "package_graph.hpp"

#include <algorithm>
#include <unordered_map>

namespace packages {
namespace {

bool by_name(const Package* a, const Package* b) { return *a->name < *b->name; }

void change(Package::Others& now, std::vector<const Package*>& wanted) {
  std::sort(wanted.begin(), wanted.end(), by_name);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (!std::equal(now.begin(), now.end(), wanted.begin(), wanted.end())) now.assign(wanted.begin(), wanted.end());
}

}  // namespace

void PackageGraph::become(const PackageList& list) {
  std::erase_if(packages_, [&](const auto& one) { return !list.contains(std::string(one.first)); });
  std::map<std::string_view, const Package*> providers;
  for (const auto& [name, listed] : list) {
    auto at = packages_.find(std::string_view(name));
    if (at == packages_.end()) {
      at = packages_.try_emplace(Text(name, packages_.get_allocator())).first;
      at->second.name = &at->first;
    }
    if (at->second.version != std::string_view(listed.version)) at->second.version = listed.version;
    for (const std::string& provided : listed.provides) providers.try_emplace(provided, &at->second);
  }
  const auto named = [&](const std::string& name) -> const Package* {
    if (const Package* const package = find(name)) return package;
    const auto at = providers.find(name);
    return at == providers.end() ? nullptr : at->second;
  };
  std::unordered_map<const Package*, std::vector<const Package*>> dependents;
  for (const auto& [name, listed] : list) {
    Package& package = packages_.find(std::string_view(name))->second;
    std::vector<const Package*> depends;
    for (const auto& choice : listed.needs) {
      for (const std::string& one : choice) {
        const Package* const other = named(one);
        if (other == nullptr) continue;
        if (other != &package) depends.push_back(other);
        break;
      }
    }
    change(package.depends, depends);
    for (const Package* const other : depends) dependents[other].push_back(&package);
  }
  for (auto& [name, package] : packages_) change(package.dependents, dependents[&package]);
}

}  // namespace packages
