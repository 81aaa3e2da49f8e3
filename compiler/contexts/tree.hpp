// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context tree of one thread. It takes so much memory and no more: when that is full, and another context is
// entered, the coldest ones become part of what is above them (fold.cpp), and what they had counted stays there.
//
// Thread-safety: the thread alone changes its tree. While there are readers (hold()), nothing of it goes away.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cells.hpp"
#include "kernel_memory.hpp"
#include "nodes.hpp"

namespace farheap::contexts {

inline constexpr std::size_t kMostTreeBytes = std::size_t{64} << 20, kLeastTreeBytes = std::size_t{1} << 20;
// Tables of accesses may still grow where contexts have no room any more.
constexpr std::size_t most_for_blocks(std::size_t most_bytes) { return most_bytes / 8 * 7; }

// What of a tree must stay because frames of its thread use it.
class LiveWords {
 public:
  virtual ~LiveWords() = default;
  class Take {
   public:
    virtual ~Take() = default;
    virtual void take(const std::uintptr_t* words, std::size_t count) = 0;
  };
  // All words of the stacks that the calling thread is on: addresses of nodes, and parts of them, among others. False:
  // they cannot be read.
  [[nodiscard]] virtual bool read(Take& to) = 0;
};

// Who else keeps addresses of nodes.
class NodeKeeper {
 public:
  virtual ~NodeKeeper() = default;
  class Moved {
   public:
    virtual ~Moved() = default;
    // The node that has what this one had.
    [[nodiscard]] virtual const Node* now(const Node* node) const = 0;
  };
  virtual void move(const Moved& moved) = 0;
};

class Tree {
 public:
  Tree() = default;
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  struct World {
    LiveWords& live;
    NodeKeeper& keeper;
    std::uint64_t (*read_clock)();
    std::size_t most_bytes;  // kLeastTreeBytes at least
  };
  // The context of the place below another one, which may have been folded meanwhile: then below the root. nullptr:
  // there is no memory.
  [[nodiscard]] Node* enter(const Place* place, Node* above, const World& world);
  // Accesses of the slot are added to its node.
  void settle(Node& node, Slot& slot, std::size_t most_bytes);

  [[nodiscard]] Node& root() { return root_; }
  [[nodiscard]] const Node& root() const { return root_; }
  // The newest first: a block comes before that of its parent. `next` leads on.
  [[nodiscard]] Node* blocks() const { return blocks_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t held_bytes() const { return cells_.held_bytes() + edge_bytes(); }

  // By World::read_clock, so far.
  [[nodiscard]] std::uint64_t ticks_of_folding() const { return ticks_of_folding_; }

  // Waits until nothing of it is going away. From then on nothing does, until let_go().
  void hold();
  void let_go() { readers_.fetch_sub(1, std::memory_order_release); }
  // In a forked child: what was counted is the parent's, and so are the readers.
  void begin_anew_in_child();

 private:
  friend class Folding;
  struct Edge {
    const Node* above;
    const Place* place;
    Node* child;
  };

  [[nodiscard]] Node* find(const Node* above, const Place* place) const;
  [[nodiscard]] Edge* edge_for(const Node* above, const Place* place) const;
  [[nodiscard]] bool make_edge_room(std::size_t most_bytes);
  void remember(const Node* above, const Place* place, Node* child);
  [[nodiscard]] std::size_t edge_bytes() const { return edges_room_ * sizeof(Edge); }
  [[nodiscard]] Node* make_block(const Place* place, Node* above, std::size_t most_bytes);
  // True if there is room for such a block now.
  [[nodiscard]] bool fold_for(const Place& place, const Node* above, const World& world);
  void add_access(Node& node, std::uint32_t site, std::uint64_t reads, std::uint64_t writes, std::size_t most_bytes,
                  bool is_locked);

  const Place* keep(const Place* place);
  const char* keep(const char* text);
  void* take_for_good(std::size_t bytes);

  SpinLock lock_;  // of what goes away
  std::atomic<std::uint32_t> readers_{0};
  Node root_{};
  std::atomic<Node*> blocks_{nullptr};
  Edge* edges_ = nullptr;
  std::size_t edges_used_ = 0, edges_room_ = 0;
  Cells cells_;
  // Copies of places, one for each function of the program: not among what is bounded.
  std::byte* piece_ = nullptr;
  std::size_t left_ = 0;
  std::uint32_t in_vain_ = 0;                     // so many more contexts find no room before it is tried again
  std::uint64_t first_tick_ = 0, last_tick_ = 0;  // when the tree was made, and folded last
  std::uint64_t ticks_of_folding_ = 0;
};

}  // namespace farheap::contexts
