// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which large object a page belongs to, found by a binary search in the pieces of memory in which that is the same. Of
// N objects there are 2 N pieces at the most, however they lie over each other.
//
// Thread-safety: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "profile/page_trace.hpp"
#include "profile/profile.hpp"

namespace farheap::plan {

class PageOwners {
 public:
  // Objects with the same entry of `named` are lives of one. Requires: as many of both.
  PageOwners(std::span<const profile::LargeObject> objects, std::span<const std::size_t> named);

  // The object that had the middle of the page last: of those that cover it the one that was born last.
  [[nodiscard]] std::optional<std::size_t> last(pager::PageNumber page) const { return find(last_, page); }
  // The same, where no other one ever had a byte of the page. When somebody else had it is not known.
  [[nodiscard]] std::optional<std::size_t> alone(pager::PageNumber page) const { return find(alone_, page); }
  // Of which find() looks through a logarithm.
  [[nodiscard]] std::size_t pieces() const { return last_.size() + alone_.size(); }

 private:
  struct Piece {
    pager::PageNumber first = 0;  // up to the next one's
    std::optional<std::size_t> object;
  };
  [[nodiscard]] static std::optional<std::size_t> find(const std::vector<Piece>& pieces, pager::PageNumber page);
  // `choose` is told of objects that begin and end, by page, and says whose the pages are from there on.
  template <class Choose>
  [[nodiscard]] static std::vector<Piece> sweep(std::vector<std::pair<pager::PageNumber, std::size_t>> begins,
                                                std::vector<std::pair<pager::PageNumber, std::size_t>> ends,
                                                Choose choose);

  std::vector<Piece> last_, alone_;
};

}  // namespace farheap::plan
