// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stacks of sites as a tree of frames: what a flame graph is drawn from. A page can neither hold nor show millions
// of frames, so what is too small to be seen is folded into its caller's frame kSmallerStacks.
//
// Thread-safety: pure functions.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "profile_figures.hpp"

namespace farheap::tool {

// Seconds waited, bytes held at the most, bytes allocated (of sites), or seconds, reads, writes (of contexts). A frame
// has those of all that it called, too, as in all flame graphs.
using StackWeights = std::array<double, 3>;

struct StackTree {
  struct Frame {
    std::size_t caller = 0;  // comes before it; its own number: the root
    std::size_t name = 0;    // in names
    StackWeights weights{};
  };
  std::vector<std::string> names;
  std::vector<Frame> frames;  // the first is the root, of everything
  std::size_t seen = 0;       // before folding
  std::size_t folded = 0;
  StackWeights folded_weights{};
};

inline constexpr char kSmallerStacks[] = "(smaller stacks)";
inline constexpr double kLeastShare = 1.0 / 20'000;  // of any weight's total
inline constexpr std::size_t kMostFrames = 20'000;

// Keeps the frames that have at least kLeastShare of the total of any weight, and of these the `most` largest. Any tree
// will do whose callers come first.
[[nodiscard]] StackTree folded_tree(StackTree whole, std::size_t most = kMostFrames);
// The stacks of the sites, folded.
[[nodiscard]] StackTree stack_tree(const std::vector<SiteFigures>& sites, std::size_t most = kMostFrames);
[[nodiscard]] nlohmann::ordered_json stack_tree_json(const StackTree& tree);

}  // namespace farheap::tool
