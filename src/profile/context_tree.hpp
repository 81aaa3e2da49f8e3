// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recorded program as a tree of contexts. A context is a function or loop, reached by one call path (seed 001,
// background). The root is the program itself.
//
// Thread-safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "profile/access_counts.hpp"

namespace farheap::profile {

// A context's place in its tree. Seed 001 numbers contexts otherwise, so that a running program can count along:
// context id = parent's id + local id.
using ContextIndex = std::uint32_t;
inline constexpr ContextIndex kRoot = 0;

// All figures are the context's own: what its children did is theirs.
struct Context {
  ContextIndex parent = kRoot;
  std::uint64_t entries = 0;  // visits that began
  double seconds = 0;
  AccessCounts accesses = {};
};

// Invariant: a parent stands before its children.
class ContextTree {
 public:
  // The root has what the program does outside of all functions and loops.
  explicit ContextTree(Context root = {.entries = 1}) { contexts_.push_back(std::move(root)); }

  // Requires: context.parent is in the tree.
  ContextIndex add(Context context);
  [[nodiscard]] std::size_t size() const { return contexts_.size(); }
  [[nodiscard]] const Context& operator[](ContextIndex index) const { return contexts_[index]; }
  [[nodiscard]] std::span<const Context> contexts() const { return contexts_; }

 private:
  std::vector<Context> contexts_;
};

}  // namespace farheap::profile
