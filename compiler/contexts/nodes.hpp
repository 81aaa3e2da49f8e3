// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of `-ffar=record` and their runtime share places, which the compiler writes down, and nodes, which are a
// thread's contexts. compiler/passes/contexts.cpp knows these layouts, too.
//
// A function's node, those of its loops, and its slots are one block: node 0, nodes 1 to `loops`, slots.
//
// Thread-safety: a thread has nodes of its own. Others read them when the program ends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farheap::contexts {

struct SiteTable;

struct LoopPlace {
  const char* function;  // that it was written in
  const char* file;
  std::uint32_t line;
  std::uint32_t parent;  // a node of the block
  std::uint32_t is_quiet;
  std::uint32_t unused;
};
static_assert(sizeof(LoopPlace) == 32);

struct Place {
  const char* function;
  const char* file;
  std::uint32_t line;
  std::uint32_t is_quiet;  // calls nobody
  std::uint32_t loops, slots;
  const LoopPlace* loop;
  const std::uint32_t* slot_node;  // whose accesses a slot has
};
static_assert(sizeof(Place) == 48);

// The counts of contexts that are folded into a node. Folding alone writes them, perhaps in a signal handler, while the
// code that it interrupts adds to the node's own figures.
struct Folded {
  std::uint64_t contexts, entries, reads, writes, ticks;
};

struct alignas(64) Node {
  const Place* cached_place;  // of a child that was entered lately
  Node* cached_child;
  std::uint64_t entries, reads, writes;
  // Quiet: of the whole visits, as far as they were timed, each as often as it stands for. Others: of this node alone,
  // and of quiet ones below it.
  std::uint64_t ticks;
  std::uint64_t until;        // visits until one is timed
  std::uint16_t weight, gap;  // of the visit that is timed; from it to the next
  std::uint32_t seen;         // entries when contexts were folded last, modulo 2^32
  Node* parent;               // nullptr: the thread's root
  const Place* place;         // of the block; nullptr: the root, or no context any more
  std::uint32_t index;        // in the block
  std::uint32_t timed;        // visits
  std::uint64_t stood_for;    // visits that `ticks` is of
  SiteTable* accesses;        // by allocation site; nullptr: none yet
  Node* next;                 // block of the thread (of node 0)
  const Place* kept;          // a copy of the place: a library may be unloaded before the profile is written
  Folded* folded;             // nullptr: nothing is
};
static_assert(sizeof(Node) == 128 && offsetof(Node, cached_place) == 0 && offsetof(Node, cached_child) == 8 &&
              offsetof(Node, entries) == 16 && offsetof(Node, reads) == 24 && offsetof(Node, writes) == 32 &&
              offsetof(Node, ticks) == 40 && offsetof(Node, until) == 48 && offsetof(Node, place) == 72);

// Accesses through one pointer, as long as it stays the same.
struct Slot {
  std::uint64_t tag;  // the pointer, mixed with the epoch of objects
  std::uint64_t reads, writes;
  std::uint32_t site;
  std::uint32_t unused;
};
static_assert(sizeof(Slot) == 32 && offsetof(Slot, reads) == 8 && offsetof(Slot, writes) == 16);

struct Current {
  Node* node;
  std::uint64_t last;  // when its clock was read
};
static_assert(offsetof(Current, last) == 8);

inline bool is_quiet(const Node& node) {
  if (node.place == nullptr) return false;
  return (node.index == 0 ? node.kept->is_quiet : node.kept->loop[node.index - 1].is_quiet) != 0;
}
// Visits since the last one that was timed took as long as the others.
inline std::uint64_t scaled_ticks(const Node& node) {
  if (!is_quiet(node) || node.stood_for == 0) return node.ticks;
  const double share = static_cast<double>(node.entries) / static_cast<double>(node.stood_for);
  return static_cast<std::uint64_t>(static_cast<double>(node.ticks) * share);
}
inline Slot* slots_of(Node* block) { return reinterpret_cast<Slot*>(block + 1 + block->kept->loops); }

// Accesses of a node by allocation site, in the order in which sites were met.
struct SiteAccess {
  std::uint32_t site;
  std::uint32_t unused;
  std::uint64_t reads, writes;
};
struct SiteTable {
  std::uint32_t used, room;
  SiteAccess rows[];
};

}  // namespace farheap::contexts
