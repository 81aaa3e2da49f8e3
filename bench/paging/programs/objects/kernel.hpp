// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Millions of small objects, each from malloc, in phases as a long-running program has them:
//   1. lists grow, a burst of nodes at a time, now this one, now that one  (before the clock runs)
//   2. all lists are walked, several times
//   3. every other list is freed
//   4. search trees grow one after the other, into the holes that the lists left
//   5. the trees and the lists that are left are walked, several times
// Pages hold a burst of one list, or mostly nodes of one tree: walks jump, but not for every node.
//
// Thread-safety: none; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace farheap::bench {

inline constexpr std::uint64_t kBurst = 1024;  // nodes that a list grows by at a time: 64 KiB
inline constexpr std::uint64_t kTreeNodes = 8192;
inline constexpr std::uint64_t kNodeBytes = 64;  // with malloc's own 8 and the rounding

struct ListNode {
  ListNode* next;
  std::uint64_t value;
  std::array<std::uint64_t, 5> payload;
};

struct TreeNode {
  TreeNode* left;
  TreeNode* right;
  std::uint64_t key;
  std::array<std::uint64_t, 4> payload;
};
static_assert(sizeof(ListNode) == 56 && sizeof(TreeNode) == 56);

// What the seed says of a population: which list a burst goes to, and the values in lists and trees.
struct Population {
  std::uint64_t bursts;
  std::uint64_t lists;
  std::uint64_t trees;
  std::uint64_t seed;

  [[nodiscard]] std::uint64_t list_of_burst(std::uint64_t burst) const;
  [[nodiscard]] std::uint64_t list_value(std::uint64_t node) const;
  [[nodiscard]] std::uint64_t tree_key(std::uint64_t tree, std::uint64_t node) const;
};
[[nodiscard]] Population population_for(std::uint64_t bytes, std::uint64_t seed);

[[nodiscard]] inline bool list_stays(std::uint64_t list) { return list % 2 == 0; }

// What a walk makes of the values it meets, in their order.
[[nodiscard]] inline std::uint64_t walked(std::uint64_t sum, std::uint64_t value) {
  return (sum ^ value) * 0x9fb21c651e98df25ULL;
}

class Objects {
 public:
  explicit Objects(const Population& population);  // phase 1
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects();

  void run(std::uint64_t walks);  // phases 2 to 5

  // One sum for every walk: of all lists, `walks` times; then of trees and remaining lists, `walks` times.
  [[nodiscard]] std::vector<std::uint64_t>& sums() { return sums_; }
  [[nodiscard]] const std::vector<ListNode*>& lists() const { return lists_; }
  [[nodiscard]] const std::vector<TreeNode*>& trees() const { return trees_; }
  [[nodiscard]] const Population& population() const { return population_; }

 private:
  [[nodiscard]] std::uint64_t walk_lists(std::uint64_t sum) const;
  [[nodiscard]] std::uint64_t walk_trees(std::uint64_t sum) const;
  void grow_tree(std::uint64_t tree);

  Population population_;
  std::vector<ListNode*> lists_;  // null: freed
  std::vector<TreeNode*> trees_;
  std::vector<std::uint64_t> sums_;
};

// Calls visit(node) in the order of the keys.
template <typename Visit>
void in_order(TreeNode* root, Visit visit) {
  std::vector<TreeNode*> above;
  for (TreeNode* node = root; node != nullptr || !above.empty();) {
    for (; node != nullptr; node = node->left) above.push_back(node);
    node = above.back();
    above.pop_back();
    visit(*node);
    node = node->right;
  }
}

}  // namespace farheap::bench
