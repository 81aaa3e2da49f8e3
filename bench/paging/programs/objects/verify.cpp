// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace farheap::bench {
namespace {

// The values of a list or the keys of a tree, in the order of a walk, as the seed says.
class Expected {
 public:
  explicit Expected(const Population& population) : population_(population), bursts_(population.lists) {
    for (std::uint64_t burst = 0; burst < population.bursts; ++burst) {
      bursts_[population.list_of_burst(burst)].push_back(burst);
    }
  }

  std::vector<std::uint64_t> list(std::uint64_t list) const {
    std::vector<std::uint64_t> values;
    for (const std::uint64_t burst : bursts_[list]) {
      for (std::uint64_t i = burst * kBurst; i < (burst + 1) * kBurst; ++i) values.push_back(population_.list_value(i));
    }
    return values;
  }

  std::vector<std::uint64_t> tree(std::uint64_t tree) const {
    std::vector<std::uint64_t> keys(kTreeNodes);
    for (std::uint64_t i = 0; i < kTreeNodes; ++i) keys[i] = population_.tree_key(tree, i);
    std::sort(keys.begin(), keys.end());
    return keys;
  }

 private:
  const Population& population_;
  std::vector<std::vector<std::uint64_t>> bursts_;  // of each list
};

std::string verify_nodes(const Objects& objects, const Expected& expected) {
  std::vector<std::uint64_t> found;
  for (std::size_t list = 0; list < objects.lists().size(); ++list) {
    found.clear();
    for (const ListNode* node = objects.lists()[list]; node != nullptr; node = node->next) found.push_back(node->value);
    if (found != (list_stays(list) ? expected.list(list) : std::vector<std::uint64_t>{})) {
      return fmt::format("list {} does not hold its values", list);
    }
  }
  if (objects.trees().size() != objects.population().trees) return "trees are missing";
  for (std::size_t tree = 0; tree < objects.trees().size(); ++tree) {
    found.clear();
    in_order(objects.trees()[tree], [&](const TreeNode& node) { found.push_back(node.key); });
    if (found != expected.tree(tree)) return fmt::format("tree {} does not hold its keys", tree);
  }
  return "";
}

}  // namespace

std::string verify_objects(Objects& objects, std::uint64_t walks) {
  const Population& population = objects.population();
  const Expected expected(population);
  std::vector<std::uint64_t> sums(2 * walks);
  for (std::uint64_t walk = 0; walk < walks; ++walk) sums[walk] = sums[walks + walk] = walk;
  const auto walk_over = [&](const std::vector<std::uint64_t>& values, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t walk = first; walk < last; ++walk) {
      for (const std::uint64_t value : values) sums[walk] = walked(sums[walk], value);
    }
  };
  for (std::uint64_t tree = 0; tree < population.trees; ++tree) walk_over(expected.tree(tree), walks, 2 * walks);
  for (std::uint64_t list = 0; list < population.lists; ++list) {
    walk_over(expected.list(list), 0, list_stays(list) ? 2 * walks : walks);
  }
  if (sums != objects.sums()) return "a walk did not meet what there was to meet";
  return verify_nodes(objects, expected);
}

}  // namespace farheap::bench
