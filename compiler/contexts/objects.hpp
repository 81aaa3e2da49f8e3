// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which allocation site an address belongs to. A page that one object covers has one word for it; a page of several
// has a list, of two bytes for each 16. Nothing is taken out when an object is freed: what is there next overwrites it.
// A site is a call that allocates, in one context.
//
// Thread-safety: any thread, without locks but where a site is new.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nodes.hpp"
#include "tree.hpp"

// Changes whenever memory becomes another site's. Slots are valid for one epoch.
extern "C" std::uint64_t __farheap_objects_epoch;

namespace farheap::contexts {

inline constexpr std::uint32_t kNoSite = 0;
inline constexpr std::uint32_t kMostSites = 65534;  // later ones are one, of no context

struct Site {
  const Node* context;  // changes when that is folded; nullptr: of several
  std::uintptr_t returns_to;
  std::uint64_t objects, allocated_bytes, live_bytes, peak_bytes;
};

[[nodiscard]] std::uint32_t site_at(std::uint64_t address);

// Requires: the caller is inside the runtime. `room`: what the object takes, which may be more than was asked for.
void allocated(const void* object, std::size_t bytes, std::size_t room, const void* returns_to);
void freed(const void* object, std::size_t room);
void freed_of(std::uint32_t site, std::size_t room);

// From 1 to the answer.
[[nodiscard]] std::uint32_t sites_made();
[[nodiscard]] const Site& site(std::uint32_t number);
// Sites of a context that is folded become sites of what is above it, with what they have.
class SiteNodes final : public NodeKeeper {
 public:
  void move(const Moved& moved) override;
};

// In a forked child: what lives is its own, too; what was allocated is the parent's.
void forget_allocations();

}  // namespace farheap::contexts
