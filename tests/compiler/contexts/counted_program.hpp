// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program as its context tree sees it: functions of all layouts that call each other in no order at all, and a plain
// tree of the same program, which folds what the tree has folded, one context after the other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "objects.hpp"
#include "tree.hpp"

namespace farheap::contexts {

inline constexpr std::size_t kMost = kLeastTreeBytes;

inline std::atomic<std::uint64_t> g_clock{1};
inline std::uint64_t read_test_clock() { return g_clock.fetch_add(1, std::memory_order_relaxed); }

// Functions of all layouts: with loops in each other, with slots, and with none of them. Every seventh calls nobody.
class Functions {
 public:
  explicit Functions(std::uint32_t count) {
    for (std::uint32_t number = 0; number < count; ++number) {
      names_.push_back("f" + std::to_string(number));
      const bool is_quiet = number % 7 == 6;
      const std::uint32_t loops = number % 4, slots = number % 5;
      auto& of_loops = loops_.emplace_back();
      for (std::uint32_t i = 0; i < loops; ++i) {
        of_loops.push_back({names_.back().c_str(), "a.c", number * 10 + i, i, is_quiet ? 1u : 0u, 0});
      }
      auto& of_slots = slots_.emplace_back();
      for (std::uint32_t i = 0; i < slots; ++i) of_slots.push_back(i % (loops + 1));
      places_.push_back({names_.back().c_str(), "a.c", number * 10, is_quiet ? 1u : 0u, loops, slots, of_loops.data(),
                         of_slots.data()});
    }
  }
  [[nodiscard]] const Place& operator[](std::uint32_t number) const { return places_[number]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(places_.size()); }

 private:
  std::deque<std::string> names_;
  std::deque<std::vector<LoopPlace>> loops_;
  std::deque<std::vector<std::uint32_t>> slots_;
  std::deque<Place> places_;
};

using Path = std::vector<std::pair<const Place*, std::uint32_t>>;

inline Path path_of(const Node& node) {
  Path path;
  for (const Node* one = &node; one->place != nullptr; one = one->parent) path.emplace_back(one->place, one->index);
  return {path.rbegin(), path.rend()};
}

// Of what a function's context is part when it is folded; its loops have gone with it.
inline Path above_function(Path path) {
  while (path.back().second != 0) path.pop_back();
  path.pop_back();
  return path;
}

struct Figures {
  std::uint64_t entries = 0, reads = 0, writes = 0, ticks = 0;
  std::uint64_t folded = 0, folded_entries = 0, folded_reads = 0, folded_writes = 0, folded_ticks = 0;
  bool operator==(const Figures&) const = default;
};

inline Figures figures_of(const Node& node) {
  Figures one{.entries = node.entries, .reads = node.reads, .writes = node.writes, .ticks = node.ticks};
  if (node.folded == nullptr) return one;
  const Folded& folded = *node.folded;
  one.folded = folded.contexts;
  one.folded_entries = folded.entries;
  one.folded_reads = folded.reads;
  one.folded_writes = folded.writes;
  one.folded_ticks = folded.ticks;
  return one;
}

inline std::map<Path, Figures> figures_of(const Tree& tree) {
  std::map<Path, Figures> found{{Path{}, figures_of(tree.root())}};
  for (Node* block = tree.blocks(); block != nullptr; block = block->next) {
    for (std::uint32_t i = 0; i <= block->kept->loops; ++i) {
      EXPECT_TRUE(found.emplace(path_of(block[i]), figures_of(block[i])).second) << "two nodes are one context";
    }
  }
  return found;
}

inline std::map<std::uint32_t, std::uint64_t> sites_of(const Tree& tree) {
  std::map<std::uint32_t, std::uint64_t> found;
  const auto add = [&](const Node& node) {
    for (std::uint32_t i = 0; node.accesses != nullptr && i < node.accesses->used; ++i) {
      found[node.accesses->rows[i].site] += node.accesses->rows[i].reads;
    }
  };
  add(tree.root());
  for (Node* block = tree.blocks(); block != nullptr; block = block->next) {
    for (std::uint32_t i = 0; i <= block->kept->loops; ++i) add(block[i]);
    for (std::uint32_t i = 0; i < block->kept->slots; ++i) {
      const Slot& slot = slots_of(block)[i];
      if (slot.reads != 0) found[slot.site] += slot.reads;
    }
  }
  return found;
}

inline Figures sum_of(const std::map<Path, Figures>& all) {
  Figures sum;
  for (const auto& [path, one] : all) {
    sum.entries += one.entries + one.folded_entries;
    sum.reads += one.reads + one.folded_reads;
    sum.writes += one.writes + one.folded_writes;
    sum.folded += one.folded;
    sum.ticks += one.folded_ticks;
    if (path.empty() || path.back().first->is_quiet == 0 || path.size() == 1) sum.ticks += one.ticks;
  }
  return sum;
}

// The same contexts, each by its path. What a tree has folded is folded here one by one, the longest paths first.
class Reference {
 public:
  // Requires: the program has counted nothing since.
  void note(const Tree& tree) { all_ = figures_of(tree); }
  // Returns how many contexts are part of others now.
  std::uint64_t fold_as(const Tree& tree) {
    const std::map<Path, Figures> now = figures_of(tree);
    std::vector<Path> gone;
    for (const auto& [path, one] : all_) {
      if (!now.contains(path)) gone.push_back(path);
    }
    std::ranges::stable_sort(gone, std::greater{}, [](const Path& path) { return path.size(); });
    for (const Path& path : gone) fold(path);
    for (const auto& [path, one] : now) all_.try_emplace(path);  // what was entered for the first time
    EXPECT_EQ(all_, now);
    return gone.size();
  }

 private:
  void fold(const Path& path) {
    const Figures one = all_[path];
    all_.erase(path);
    Figures& to = all_[above_function(path)];
    to.folded += 1 + one.folded;
    to.folded_entries += one.entries + one.folded_entries;
    to.folded_reads += one.reads + one.folded_reads;
    to.folded_writes += one.writes + one.folded_writes;
    to.folded_ticks += one.folded_ticks;
    if (path.back().first->is_quiet == 0 || path.size() == 1) to.folded_ticks += one.ticks;
  }

  std::map<Path, Figures> all_;
};

// Frames, each in a context of its function; what they use is what lives.
class Program : private LiveWords, private NodeKeeper {
 public:
  Program(const Functions& functions, unsigned seed) : functions_(functions), random_(seed) {}

  void call(std::uint32_t function) {
    Node* const above = frames_.empty() ? &tree_.root() : frames_.back().node;
    const std::uint64_t before = folds;
    Node* const block = tree_.enter(&functions_[function], above, {*this, *this, read_test_clock, kMost});
    ASSERT_NE(block, nullptr);
    if (folds != before) look_after_folding();
    ++block->entries;
    ++entries;
    if (functions_[function].is_quiet != 0) ++block->stood_for;
    most_held = std::max(most_held, tree_.held_bytes());
    frames_.push_back({block, &functions_[function]});
  }
  // The frame enters one of its loops.
  void go_to(std::uint32_t index) {
    Node*& node = frames_.back().node;
    node = node - node->index + index;
    ++node->entries;
    ++entries;
  }
  void work(std::uint64_t time) {
    Node* const node = frames_.back().node;
    node->ticks += time;
    node->reads += 3;
    node->writes += 2;
    if (!is_quiet(*node) || (node->index == 0 && node->parent == &tree_.root())) ticks += time;
    reads += 3;
    writes += 2;
    g_clock.fetch_add(time, std::memory_order_relaxed);
  }
  void access(std::uint32_t slot_number, std::uint32_t site) {
    Node* const block = frames_.back().node - frames_.back().node->index;
    if (slot_number >= block->kept->slots) return;
    Slot& slot = slots_of(block)[slot_number];
    if (slot.site != site) {
      tree_.settle(block[block->kept->slot_node[slot_number]], slot, kMost);
      slot.site = site;
    }
    ++slot.reads;
    ++by_site[site];
  }
  // A site's address of a node, as the table of objects keeps it.
  void keep_node() { kept_.push_back({frames_.back().node, path_of(*frames_.back().node)}); }
  void end() { frames_.pop_back(); }

  [[nodiscard]] std::size_t depth() const { return frames_.size(); }
  [[nodiscard]] const Node& node() const { return *frames_.back().node; }
  [[nodiscard]] bool is_in_quiet() const { return !frames_.empty() && frames_.back().place->is_quiet != 0; }
  [[nodiscard]] std::uint32_t any(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  [[nodiscard]] Tree& tree() { return tree_; }

  enum class Sites : bool { kAll, kSome };
  void expect_whole(Sites sites = Sites::kAll) const {
    const Figures sum = sum_of(figures_of(tree_));
    EXPECT_EQ(sum.entries, entries);
    EXPECT_EQ(sum.reads, reads);
    EXPECT_EQ(sum.writes, writes);
    EXPECT_EQ(sum.ticks, ticks);
    if (sites == Sites::kAll) {
      EXPECT_EQ(sites_of(tree_), by_site);
    }
  }

  std::uint64_t entries = 0, reads = 0, writes = 0, ticks = 0;
  std::map<std::uint32_t, std::uint64_t> by_site;
  std::uint64_t folds = 0, folded = 0;
  std::size_t most_held = 0;
  bool stacks_can_be_read = true;
  bool has_reference = true;

 private:
  struct Frame {
    Node* node;
    const Place* place;
  };
  struct Kept {
    const Node* node;
    Path path;
  };

  // Nothing is folded yet.
  bool read(Take& to) override {
    ++folds;
    if (has_reference) reference_.note(tree_);
    for (const Frame& frame : frames_) {
      // As a compiler may keep it: an address in the block.
      const std::uintptr_t words[] = {17, reinterpret_cast<std::uintptr_t>(frame.node) + random_() % sizeof(Node), 0};
      to.take(words, std::size(words));
    }
    return stacks_can_be_read;
  }
  void move(const Moved& moved) override {
    for (Kept& one : kept_) one.node = moved.now(one.node);
  }
  void look_after_folding() {
    for (const Frame& frame : frames_) EXPECT_EQ(frame.node->place, frame.place) << "a frame uses it";
    if (has_reference) folded += reference_.fold_as(tree_);
    for (Kept& one : kept_) {
      const Path now = path_of(*one.node);
      ASSERT_LE(now.size(), one.path.size());
      EXPECT_TRUE(std::equal(now.begin(), now.end(), one.path.begin()));
      one.path = now;
    }
  }

  const Functions& functions_;
  std::mt19937 random_;
  Tree tree_;
  Reference reference_;
  std::vector<Frame> frames_;
  std::vector<Kept> kept_;
};

// A program of no order at all: any function calls any other.
inline void step(Program& program, const Functions& functions) {
  const bool ends = program.any(10) < 4 || program.is_in_quiet() || program.depth() > 30;
  if (program.depth() != 0 && ends) return program.end();
  program.call(program.any(functions.size()));
  const std::uint32_t loops = program.node().kept->loops;
  if (loops != 0 && program.any(2) == 0) program.go_to(1 + program.any(loops));
  program.work(program.any(50));
  if (program.any(8) == 0) program.access(program.any(5), 1 + program.any(40));
  if (program.any(100) == 0) program.keep_node();
}

}  // namespace farheap::contexts
