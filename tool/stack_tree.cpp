// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A frame has no less weight than what it calls, so that the largest frames are a tree by themselves.
#include "stack_tree.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace farheap::tool {

namespace {

constexpr std::size_t kRoot = 0;

void add(StackWeights& into, const StackWeights& more) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] += more[i];
}

StackWeights weights_of(const SiteFigures& site) {
  return {site.waits.seconds, static_cast<double>(site.peak_bytes), static_cast<double>(site.allocated_bytes)};
}

class Grower {
 public:
  Grower() { tree_.frames.push_back({kRoot, name("all"), {}}); }

  void add_site(const SiteFigures& site) {
    const StackWeights weights = weights_of(site);
    std::size_t at = kRoot;
    add(tree_.frames[at].weights, weights);
    if (site.stack.empty()) return add(tree_.frames[callee(at, site.site)].weights, weights);
    for (const std::string& frame : site.stack) {
      at = callee(at, frame);
      add(tree_.frames[at].weights, weights);
    }
  }

  StackTree finish() && {
    tree_.seen = tree_.frames.size();
    return std::move(tree_);
  }

 private:
  std::size_t name(const std::string& text) {
    const auto [found, is_new] = names_.try_emplace(text, tree_.names.size());
    if (is_new) tree_.names.push_back(text);
    return found->second;
  }

  std::size_t callee(std::size_t caller, const std::string& text) {
    const auto [found, is_new] = callees_.try_emplace({caller, name(text)}, tree_.frames.size());
    if (is_new) tree_.frames.push_back({caller, found->first.second, {}});
    return found->second;
  }

  StackTree tree_;
  std::unordered_map<std::string, std::size_t> names_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> callees_;
};

// Of the total of that weight where it is largest.
double share_of(const StackWeights& weights, const StackWeights& all) {
  double share = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (all[i] > 0) share = std::max(share, weights[i] / all[i]);
  }
  return share;
}

std::vector<bool> kept_frames(const StackTree& tree, std::size_t most) {
  std::vector<double> shares;
  shares.reserve(tree.frames.size());
  for (const auto& frame : tree.frames) shares.push_back(share_of(frame.weights, tree.frames[kRoot].weights));
  std::vector<std::size_t> order(tree.frames.size());
  std::iota(order.begin(), order.end(), 0);
  // A caller comes before what it calls: first in the tree, and first among equals.
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t one) { return shares[one]; });
  std::vector<bool> kept(order.size(), false);
  for (std::size_t i = 0; i < std::min(order.size(), most); ++i) {
    kept[order[i]] = order[i] == kRoot || shares[order[i]] >= kLeastShare;
  }
  return kept;
}

// The names that are still used, and these alone.
void renumber_names(StackTree& tree) {
  std::vector<std::string> names;
  std::map<std::size_t, std::size_t> numbers;
  for (auto& frame : tree.frames) {
    const auto [found, is_new] = numbers.try_emplace(frame.name, names.size());
    if (is_new) names.push_back(tree.names[frame.name]);
    frame.name = found->second;
  }
  tree.names = std::move(names);
}

}  // namespace

StackTree folded_tree(StackTree whole, std::size_t most) {
  const std::vector<bool> kept = kept_frames(whole, most);
  StackTree tree;
  tree.seen = whole.seen;
  tree.names = std::move(whole.names);
  const std::size_t smaller = tree.names.size();
  tree.names.emplace_back(kSmallerStacks);
  std::vector<std::size_t> numbers(whole.frames.size());
  std::map<std::size_t, StackWeights> rest;  // by the caller's new number
  for (std::size_t i = 0; i < whole.frames.size(); ++i) {
    auto frame = whole.frames[i];
    const bool hangs_on = kept[frame.caller];
    if (kept[i]) {
      frame.caller = numbers[frame.caller];
      numbers[i] = tree.frames.size();
      tree.frames.push_back(frame);
      continue;
    }
    ++tree.folded;
    if (!hangs_on) continue;  // its weight is in its caller's
    add(rest[numbers[frame.caller]], frame.weights);
    add(tree.folded_weights, frame.weights);
  }
  for (const auto& [caller, weights] : rest) tree.frames.push_back({caller, smaller, weights});
  renumber_names(tree);
  return tree;
}

StackTree stack_tree(const std::vector<SiteFigures>& sites, std::size_t most) {
  Grower grower;
  for (const SiteFigures& site : sites) grower.add_site(site);
  return folded_tree(std::move(grower).finish(), most);
}

nlohmann::ordered_json stack_tree_json(const StackTree& tree) {
  auto frames = nlohmann::ordered_json::array();
  for (const auto& frame : tree.frames) {
    frames.push_back({frame.caller, frame.name, frame.weights[0], frame.weights[1], frame.weights[2]});
  }
  return {{"names", tree.names},
          {"frames", std::move(frames)},
          {"seen", tree.seen},
          {"folded", tree.folded},
          {"folded_weights", tree.folded_weights}};
}

}  // namespace farheap::tool
