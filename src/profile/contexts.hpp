// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The context tree of a program as the instrumented recorder counts it (`farcc -ffar=record`): exact where a profile of
// `farheap record` has samples. Contexts are in preorder and numbered from 0, the root; so the equation of seed 001
// holds, in which a local id tells a context from its siblings:
//
//   context id = parent's context id + local id
//
// Thread-safety: values, and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/context_tree.hpp"

namespace farheap::profile {

// A function or loop of the source.
struct ContextPlace {
  std::string function;  // of a loop: the one that it was written in, which may have been put into another
  std::string source;    // empty: not known
  std::uint64_t line = 0;
  bool is_loop = false;
  friend auto operator<=>(const ContextPlace&, const ContextPlace&) = default;
};

// All figures are the context's own: what its children did is theirs.
struct CountedContext {
  std::uint32_t local_id = 0;  // the context's number less that of its parent; 0: the root
  std::uint32_t place = 0;     // of Contexts::places; the root's is unused
  std::uint64_t entries = 0, own_ns = 0, reads = 0, writes = 0;
  // Contexts that are part of this one now, and how often they were entered; their other figures are in its own.
  std::uint64_t folded = 0, folded_entries = 0;
  friend bool operator==(const CountedContext&, const CountedContext&) = default;
};

// All that one call allocates in one context.
struct CountedSite {
  std::uint32_t context = 0;
  std::uint32_t file = 0;    // of Profile::files; where the call returns to
  std::uint64_t offset = 0;  // in the file
  std::uint64_t objects = 0, allocated_bytes = 0, live_bytes = 0, peak_bytes = 0;
  friend bool operator==(const CountedSite&, const CountedSite&) = default;
};

struct ContextAccesses {
  std::uint32_t context = 0;
  std::uint32_t site = 0;  // of Contexts::sites
  std::uint64_t reads = 0, writes = 0;
  friend bool operator==(const ContextAccesses&, const ContextAccesses&) = default;
};

struct Contexts {
  std::vector<ContextPlace> places;
  std::vector<CountedContext> contexts;   // empty: the program was not compiled to count
  std::vector<CountedSite> sites;         // [0] is unused
  std::vector<ContextAccesses> accesses;  // the rest of a context's went to the stack, globals, or what is not known
  std::uint64_t folded = 0;  // contexts that were cold, and are part of what is above them; each time that they were
  friend bool operator==(const Contexts&, const Contexts&) = default;

  [[nodiscard]] std::uint32_t parent(std::uint32_t context) const { return context - contexts[context].local_id; }
};

// The tree as plans take it: accesses by site.
[[nodiscard]] ContextTree tree_of(const Contexts& contexts);

// Puts the trees of several threads together: what has the same places on its path is one context.
class ContextCollector {
 public:
  ContextCollector();
  static constexpr std::uint32_t kTop = 0;  // the root

  // The context of the place below another one.
  [[nodiscard]] std::uint32_t child(std::uint32_t parent, const ContextPlace& place);
  // Figures are added. Time may be negative on its way: what is subtracted may come before what it is subtracted from.
  void add(std::uint32_t context, std::uint64_t entries, std::int64_t own_ns, std::uint64_t reads,
           std::uint64_t writes);
  // So many contexts, which were entered so often, have become part of it already; their figures have been added.
  void add_folded(std::uint32_t context, std::uint64_t contexts, std::uint64_t entries);
  // Sites of the same context, file and offset are one.
  [[nodiscard]] std::uint32_t site(const CountedSite& one);
  void add(const ContextAccesses& more);

  // In preorder, the longest-taking first among siblings. With more than `most` contexts those that took the least
  // time, with all below them, become part of what is above them.
  [[nodiscard]] Contexts finish(std::size_t most) const;

 private:
  struct Collected {
    std::uint32_t parent, place;
    std::uint64_t entries = 0, reads = 0, writes = 0, folded = 0, folded_entries = 0;
    std::int64_t own_ns = 0;
    std::vector<std::uint32_t> children;
  };
  [[nodiscard]] std::vector<std::uint64_t> whole_ns() const;
  // By context: whether it stays.
  [[nodiscard]] std::vector<bool> kept(const std::vector<std::uint64_t>& whole, std::size_t most) const;

  std::vector<ContextPlace> places_;
  std::map<ContextPlace, std::uint32_t> place_numbers_;
  std::vector<Collected> contexts_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> children_;  // by parent and place
  std::vector<CountedSite> sites_;
  std::map<std::pair<std::uint32_t, std::pair<std::uint32_t, std::uint64_t>>, std::uint32_t> site_numbers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, ContextAccesses> accesses_;
};

// The contents of two sections of a profile (docs/formats.md).
[[nodiscard]] std::string encode_contexts(const Contexts& contexts);
// False for what is none. `files`: how many files the profile has.
[[nodiscard]] bool take_contexts(std::string_view bytes, std::size_t files, Contexts& into);
// What was folded, by context; empty: nothing was.
[[nodiscard]] std::string encode_folded(const Contexts& contexts);
[[nodiscard]] bool take_folded(std::string_view bytes, Contexts& into);

}  // namespace farheap::profile
