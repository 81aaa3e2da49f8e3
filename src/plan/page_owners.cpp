// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/page_owners.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/units.hpp"

namespace farheap::plan {

namespace {

using base::kPageBytes;
using pager::PageNumber;
using Edge = std::pair<PageNumber, std::size_t>;  // and of which object

// How many pages have their first byte, or their middle, before this byte.
PageNumber first_bytes_before(std::uint64_t byte) { return (byte + kPageBytes - 1) / kPageBytes; }
PageNumber middles_before(std::uint64_t byte) { return (byte + kPageBytes / 2 - 1) / kPageBytes; }

}  // namespace

// From the first page on: what begins and what ends there changes who has the pages from there on.
template <class Choose>
std::vector<PageOwners::Piece> PageOwners::sweep(std::vector<Edge> begins, std::vector<Edge> ends, Choose choose) {
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  std::vector<Piece> pieces;
  auto begin = begins.begin();
  for (auto end = ends.begin(); end != ends.end();) {
    const PageNumber at = begin != begins.end() ? std::min(begin->first, end->first) : end->first;
    for (; end != ends.end() && end->first == at; ++end) choose.end(end->second);
    for (; begin != begins.end() && begin->first == at; ++begin) choose.begin(begin->second);
    pieces.push_back({at, choose.chosen()});
  }
  return pieces;
}

PageOwners::PageOwners(std::span<const profile::LargeObject> objects, std::span<const std::size_t> named) {
  struct Last {
    std::span<const profile::LargeObject> objects;
    std::set<std::pair<std::uint64_t, std::size_t>> there = {};  // by birth
    void begin(std::size_t object) { there.emplace(objects[object].born, object); }
    void end(std::size_t object) { there.erase({objects[object].born, object}); }
    [[nodiscard]] std::optional<std::size_t> chosen() const {
      return there.empty() ? std::nullopt : std::optional(there.rbegin()->second);
    }
  };
  struct Alone : Last {
    std::span<const std::size_t> named = {};
    std::map<std::size_t, std::size_t> lives = {};  // that are there, by name
    void begin(std::size_t object) {
      Last::begin(object);
      ++lives[named[object]];
    }
    void end(std::size_t object) {
      Last::end(object);
      if (--lives[named[object]] == 0) lives.erase(named[object]);
    }
    [[nodiscard]] std::optional<std::size_t> chosen() const {
      return lives.size() == 1 ? Last::chosen() : std::nullopt;
    }
  };
  std::vector<Edge> begins, ends, middle_begins, middle_ends;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::uint64_t first = objects[i].first, end = first + objects[i].bytes;
    if (middles_before(first) < middles_before(end)) {
      middle_begins.emplace_back(middles_before(first), i);
      middle_ends.emplace_back(middles_before(end), i);
    }
    if (first == end) continue;
    begins.emplace_back(first / kPageBytes, i);
    ends.emplace_back(first_bytes_before(end), i);
  }
  last_ = sweep(std::move(middle_begins), std::move(middle_ends), Last{objects});
  alone_ = sweep(std::move(begins), std::move(ends), Alone{{objects}, named});
}

std::optional<std::size_t> PageOwners::find(const std::vector<Piece>& pieces, PageNumber page) {
  const auto behind = std::ranges::upper_bound(pieces, page, {}, &Piece::first);
  return behind == pieces.begin() ? std::nullopt : std::prev(behind)->object;
}

}  // namespace farheap::plan
