// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contexts that took the least time become part of what is above them, so that there is room for others.
//
// Reads, writes and entries of all contexts together stay exact, and so does the time as far as it was. A node has the
// figures of what was folded into it beside its own (Folded). Accesses by site move to the node above; where that
// tells kMostRows sites apart already, they lose their site.
// A context that comes again after it was folded begins anew; its figures are then in two nodes.
//
// A context is as hot as its share of the time since the tree was made, or of that since contexts were folded
// last, whichever is more; all below it included. So what was hot for long stays, and what has just become hot does.
// Contexts that frames of the thread use stay in any case: every address on its stack that lies in a block keeps that
// block, and those above it. Stacks that the thread is not on (coroutines) are not looked at. A context whose frame
// sleeps there may be folded, and what the frame counts later is then another context's, or nobody's; Cells sees to it
// that it is never anything else.
//
// Thread-safety: for the thread of the tree; requires the tree's lock, no readers, and that no signal handler comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tree.hpp"

namespace farheap::contexts {

class Folding final : private LiveWords::Take, private NodeKeeper::Moved {
 public:
  Folding(Tree& tree, const Tree::World& world, const Node* current) : tree_(tree), world_(world), current_(current) {}
  ~Folding() override;
  Folding(const Folding&) = delete;
  Folding& operator=(const Folding&) = delete;

  // Folds until there is room for more blocks like that of `place`, and for others. False: there is little.
  [[nodiscard]] bool make_room(const Place& place);

 private:
  struct Row {
    Node* block;
    std::size_t bytes;
    Row* above;                  // nullptr: the root
    double whole, recent, heat;  // ticks, in all and lately; the larger share of the two. With all below
    std::uint64_t accesses;      // and entries. Likewise
    Node* to;                    // where it was folded
    std::uint32_t age;           // 0: the newest
    bool stays;                  // in any case
    bool goes;
  };

  [[nodiscard]] bool gather();
  void measure();
  [[nodiscard]] bool find_live();
  void sort_by_heat();
  void fold_coldest(std::size_t count);
  [[nodiscard]] bool fold(Row& row);
  void forget_what_goes();
  [[nodiscard]] Row* row_of(const void* address) const;
  void take(const std::uintptr_t* words, std::size_t count) override;
  [[nodiscard]] const Node* now(const Node* node) const override;

  Tree& tree_;
  const Tree::World& world_;
  const Node* const current_;
  std::byte* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  std::span<Row> rows_;               // by address
  std::span<Row*> by_age_, by_heat_;  // the newest, the coldest first
  std::span<Tree::Edge> kept_edges_;  // room for them
  std::size_t gone_ = 0;              // of by_heat_
};

}  // namespace farheap::contexts
