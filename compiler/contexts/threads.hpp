// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Context trees of threads. A thread that begins takes the tree of one that has ended, and counts on in it, so that
// there are as many trees as there were threads at once, each of most_tree_bytes() at the most.
//
// Thread-safety: any thread its own tree. Others read counts while the thread counts on; while somebody holds the trees
// nothing of them goes away.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nodes.hpp"
#include "tree.hpp"

// Instrumented code knows these names.
extern "C" {
extern __thread farheap::contexts::Current __farheap_context __attribute__((tls_model("initial-exec")));
farheap::contexts::Node* __farheap_context_enter(const farheap::contexts::Place* place);
std::uint64_t __farheap_context_begin(farheap::contexts::Node* node);
void __farheap_context_end(farheap::contexts::Node* node, std::uint64_t start);
void __farheap_context_object(farheap::contexts::Node* node, farheap::contexts::Slot* slot, std::uint64_t address,
                              std::uint64_t tag);
}

namespace farheap::contexts {

// While it lives, the thread is inside the runtime: what it allocates is not the program's, and a signal handler that
// comes then counts nothing.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  [[nodiscard]] bool is_first() const { return first_; }

 private:
  bool first_;
};
[[nodiscard]] bool is_inside();

// The context that the thread is in; nullptr: there is no memory for it.
[[nodiscard]] Node* current_node();

// How much the tree of a thread takes at the most, functions' names aside; kLeastTreeBytes at least.
void set_most_tree_bytes(std::size_t bytes);

// While it lives, nothing of any tree goes away, and no context is folded: contexts that find no room stand below the
// root. For who writes the profile.
class HeldTrees {
 public:
  HeldTrees();
  ~HeldTrees();
  HeldTrees(const HeldTrees&) = delete;
  HeldTrees& operator=(const HeldTrees&) = delete;
  // Calls take(tree, argument) with each of those that are held.
  void for_each(void (*take)(Tree& tree, void* argument), void* argument) const;

 private:
  void* first_;
};
[[nodiscard]] bool is_root(const Node& node);

// Around a fork, so that no tree is in the middle of a change. In the child: what the parent has counted is the
// parent's.
void hold_for_fork();
void let_go_in_parent();
void begin_anew_in_child();

[[nodiscard]] std::uint64_t read_clock();
// Nanoseconds of a tick, by the system's clock since the program began.
[[nodiscard]] double ns_per_tick();

}  // namespace farheap::contexts
