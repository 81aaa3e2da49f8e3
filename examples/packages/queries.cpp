// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "queries.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace packages {

std::vector<const Package*> all_dependents(const Package& package) {
  std::vector<const Package*> found{&package};
  std::unordered_set<const Package*> seen{&package};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const Package* const other : found[i]->dependents) {
      if (seen.insert(other).second) found.push_back(other);
    }
  }
  found.erase(found.begin());
  std::sort(found.begin(), found.end(), [](auto* a, auto* b) { return *a->name < *b->name; });
  return found;
}

std::vector<const Package*> shortest_path(const Package& from, const Package& to) {
  std::unordered_map<const Package*, const Package*> came_from{{&from, nullptr}};
  std::vector<const Package*> reached{&from};
  for (std::size_t i = 0; i < reached.size() && !came_from.contains(&to); ++i) {
    for (const Package* const next : reached[i]->depends) {
      if (came_from.try_emplace(next, reached[i]).second) reached.push_back(next);
    }
  }
  std::vector<const Package*> path;
  if (!came_from.contains(&to)) return path;
  for (const Package* at = &to; at != nullptr; at = came_from[at]) path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<std::pair<double, const Package*>> rank(const PackageGraph& graph, int rounds) {
  constexpr double kDamping = 0.85;
  const auto count = static_cast<double>(graph.size());
  std::unordered_map<const Package*, double> score, next;
  graph.for_each([&](const Package& one) { score[&one] = 1 / count; });
  for (int round = 0; round < rounds; ++round) {
    double ends = 0;  // of those that depend on nothing: it goes to all
    graph.for_each([&](const Package& one) { ends += one.depends.empty() ? score[&one] : 0; });
    graph.for_each([&](const Package& one) { next[&one] = (1 - kDamping + kDamping * ends) / count; });
    graph.for_each([&](const Package& one) {
      const double share = kDamping * score[&one] / static_cast<double>(one.depends.size());
      for (const Package* const other : one.depends) next[other] += share;
    });
    score.swap(next);
  }
  std::vector<std::pair<double, const Package*>> ranked;
  ranked.reserve(score.size());
  for (const auto& [package, value] : score) ranked.emplace_back(value, package);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : *a.second->name < *b.second->name;
  });
  return ranked;
}

std::vector<std::string> changes(const std::map<std::string, std::string>& before, const PackageGraph& now) {
  std::map<std::string, std::string> lines;
  for (const auto& [name, version] : before) {
    if (now.find(name) == nullptr) lines[name].append("- ").append(name).append(" ").append(version);
  }
  now.for_each([&](const Package& one) {
    const std::string name(*one.name), version(one.version);
    const auto at = before.find(name);
    if (at == before.end()) {
      lines[name] = "+ " + name + " " + version;
    } else if (at->second != version) {
      lines[name] = "~ " + name + " " + at->second + " -> " + version;
    }
  });
  std::vector<std::string> sorted;
  sorted.reserve(lines.size());
  for (const auto& [name, line] : lines) sorted.push_back(line);
  return sorted;
}

}  // namespace packages
