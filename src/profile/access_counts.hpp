// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often a context accesses what each allocation site has made. (Seeds 001 and 004 say *object* for all that one
// site allocates in one context.)
//
// Thread-safety: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace farheap::profile {

using SiteId = std::uint32_t;

struct SiteCount {
  SiteId site = 0;
  std::uint64_t accesses = 0;
  friend bool operator==(const SiteCount&, const SiteCount&) = default;
};

// Sites in ascending order, each once, none with no access.
class AccessCounts {
 public:
  AccessCounts() = default;
  // In any order; what a site has several times is added up.
  explicit AccessCounts(std::vector<SiteCount> counts);

  [[nodiscard]] std::span<const SiteCount> sites() const { return counts_; }
  [[nodiscard]] std::size_t size() const { return counts_.size(); }
  [[nodiscard]] bool empty() const { return counts_.empty(); }
  [[nodiscard]] std::uint64_t of(SiteId site) const;
  AccessCounts& operator+=(const AccessCounts& other);
  friend bool operator==(const AccessCounts&, const AccessCounts&) = default;

 private:
  std::vector<SiteCount> counts_;
};

}  // namespace farheap::profile
