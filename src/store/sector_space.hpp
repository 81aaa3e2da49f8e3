// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which sectors of a store are free. Hands out the smallest free extent that fits, otherwise fresh sectors at the
// end; neighbours that come back are joined, and what has grown large is named so that its space can be given back.
//
// Thread-safety: none; the user locks.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace farheap::store {

struct Extent {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

class SectorSpace {
 public:
  // `worth` is how many newly freed sectors make an extent worth giving back.
  explicit SectorSpace(std::uint64_t worth) : worth_(worth) {}

  // Requires: count > 0.
  std::uint64_t take(std::uint64_t count) {
    const auto fit = by_size_.lower_bound({count, 0});
    if (fit == by_size_.end()) {
      const auto first = end_;
      end_ += count;
      return first;
    }
    const auto [size, first] = *fit;
    const auto at = free_.find(first);
    const auto unreturned = at->second.unreturned;
    remove(at);
    if (size != count) insert(first + count, size - count, std::min(unreturned, size - count));
    return first;
  }

  // An extent to give back to the store, if there is one now. It stays free.
  std::optional<Extent> give(Extent extent) {
    if (extent.count == 0) return std::nullopt;
    auto [first, count] = extent;
    std::uint64_t unreturned = count;
    auto next = free_.lower_bound(first);
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second.count == first) {
        first = before->first, count += before->second.count, unreturned += before->second.unreturned;
        remove(before);
      }
    }
    if (next != free_.end() && next->first == extent.first + extent.count) {
      count += next->second.count, unreturned += next->second.unreturned;
      remove(next);
    }
    const bool worthwhile = unreturned >= worth_;
    insert(first, count, worthwhile ? 0 : unreturned);
    return worthwhile ? std::optional<Extent>({first, count}) : std::nullopt;
  }

  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  struct Free {
    std::uint64_t count;
    std::uint64_t unreturned;  // sectors that the store still has
  };
  using Map = std::map<std::uint64_t, Free>;

  void insert(std::uint64_t first, std::uint64_t count, std::uint64_t unreturned) {
    free_.emplace(first, Free{count, unreturned});
    by_size_.emplace(count, first);
  }
  void remove(Map::iterator at) {
    by_size_.erase({at->second.count, at->first});
    free_.erase(at);
  }

  std::uint64_t worth_;
  std::uint64_t end_ = 0;
  Map free_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // count, first
};

}  // namespace farheap::store
