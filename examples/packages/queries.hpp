// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is asked of a graph of packages. It is only read.
//
// Thread-safety: any thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "package_graph.hpp"

namespace packages {

// All that need it, directly or through others, by name.
std::vector<const Package*> all_dependents(const Package& package);

// One of the shortest ways along dependencies, both ends included: the first by name. Empty: there is none.
std::vector<const Package*> shortest_path(const Package& from, const Package& to);

// PageRank: a package is important when important ones depend on it. The largest first.
std::vector<std::pair<double, const Package*>> rank(const PackageGraph& graph, int rounds);

// What came, went or got another version, in words and by name.
std::vector<std::string> changes(const std::map<std::string, std::string>& before, const PackageGraph& now);

}  // namespace packages
