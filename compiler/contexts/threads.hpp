// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Context trees of threads. A thread that begins takes the tree of one that has ended, and counts on in it, so that
// there are as many trees as there were threads at once. Memory comes from the kernel: the program's allocator may be
// the one that asks.
//
// Thread-safety: the tree of a thread changes under its lock, which only the thread itself and who writes the profile
// take; counts are read without.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nodes.hpp"

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

// Accesses of the slot are added to its node.
void settle(Node& node, Slot& slot);

// Calls take(block, argument) with each block of each tree, for who writes the profile. Parents need not come first.
void for_each_block(void (*take)(Node* block, void* argument), void* argument);
[[nodiscard]] bool is_root(const Node& node);

// In a forked child: what the parent has counted is the parent's.
void begin_anew_in_child();

[[nodiscard]] std::uint64_t read_clock();
// Nanoseconds of a tick, by the system's clock since the program began.
[[nodiscard]] double ns_per_tick();

// Zeroed memory for good; nullptr if there is none.
[[nodiscard]] void* take_from_kernel(std::size_t bytes);

}  // namespace farheap::contexts
