// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernel.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

constexpr std::uint64_t kBurstsPerList = 8;

template <typename Node>
Node* make_node(const Node& value) {
  void* const memory = std::malloc(sizeof(Node));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Node(value);
}

void free_list(ListNode* node) {
  while (node != nullptr) std::free(std::exchange(node, node->next));
}

}  // namespace

std::uint64_t Population::list_of_burst(std::uint64_t burst) const {
  return scale_random(random_at(seed, burst), lists);
}
std::uint64_t Population::list_value(std::uint64_t node) const { return random_at(seed + 1, node); }
std::uint64_t Population::tree_key(std::uint64_t tree, std::uint64_t node) const {
  return random_at(seed + 2, tree * kTreeNodes + node);
}

// The trees are as large as the half of the lists that is freed before them.
Population population_for(std::uint64_t bytes, std::uint64_t seed) {
  const std::uint64_t nodes = bytes / kNodeBytes;
  const std::uint64_t bursts = nodes / kBurst;
  return {bursts, std::max<std::uint64_t>(2, bursts / kBurstsPerList),
          std::max<std::uint64_t>(1, nodes / 2 / kTreeNodes), seed};
}

Objects::Objects(const Population& population) : population_(population), lists_(population.lists) {
  std::vector<ListNode*> last(population.lists);
  for (std::uint64_t burst = 0; burst < population.bursts; ++burst) {
    const std::uint64_t list = population.list_of_burst(burst);
    for (std::uint64_t i = burst * kBurst; i < (burst + 1) * kBurst; ++i) {
      ListNode* const node = make_node<ListNode>({nullptr, population.list_value(i), {i}});
      (last[list] == nullptr ? lists_[list] : last[list]->next) = node;
      last[list] = node;
    }
  }
}

Objects::~Objects() {
  for (ListNode* const first : lists_) free_list(first);
  std::vector<TreeNode*> nodes;
  for (TreeNode* const root : trees_) {
    nodes.clear();
    in_order(root, [&](TreeNode& node) { nodes.push_back(&node); });
    for (TreeNode* const node : nodes) std::free(node);
  }
}

std::uint64_t Objects::walk_lists(std::uint64_t sum) const {
  for (const ListNode* node : lists_) {
    for (; node != nullptr; node = node->next) sum = walked(sum, node->value);
  }
  return sum;
}

std::uint64_t Objects::walk_trees(std::uint64_t sum) const {
  for (TreeNode* const root : trees_) {
    in_order(root, [&](const TreeNode& node) { sum = walked(sum, node.key); });
  }
  return sum;
}

void Objects::grow_tree(std::uint64_t tree) {
  TreeNode* root = nullptr;
  for (std::uint64_t i = 0; i < kTreeNodes; ++i) {
    const std::uint64_t key = population_.tree_key(tree, i);
    TreeNode** place = &root;
    while (*place != nullptr) place = key < (*place)->key ? &(*place)->left : &(*place)->right;
    *place = make_node<TreeNode>({nullptr, nullptr, key, {i}});
  }
  trees_.push_back(root);
}

void Objects::run(std::uint64_t walks) {
  for (std::uint64_t walk = 0; walk < walks; ++walk) sums_.push_back(walk_lists(walk));
  for (std::uint64_t list = 0; list < population_.lists; ++list) {
    if (!list_stays(list)) free_list(std::exchange(lists_[list], nullptr));
  }
  for (std::uint64_t tree = 0; tree < population_.trees; ++tree) grow_tree(tree);
  for (std::uint64_t walk = 0; walk < walks; ++walk) sums_.push_back(walk_lists(walk_trees(walk)));
}

}  // namespace farheap::bench
