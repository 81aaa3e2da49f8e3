// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A set of addresses, kept as the runs they form.
//
// Thread-safety: none; the owner locks. Changes allocate: inside a program, only as the runtime (base::InsideRuntime).
#pragma once

#include <algorithm>
#include <boost/icl/interval_set.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace farheap::segment {

class AddressSet {
  using Interval = boost::icl::right_open_interval<std::uintptr_t>;

 public:
  // Both answer how many bytes of it were not in the set before, or were.
  std::size_t add(const std::byte* at, std::size_t bytes) {
    const std::size_t added = bytes - overlap(at, bytes);
    runs_.add(interval(at, bytes));
    bytes_ += added;
    return added;
  }
  std::size_t remove(const std::byte* at, std::size_t bytes) {
    const std::size_t removed = overlap(at, bytes);
    if (removed != 0) runs_.subtract(interval(at, bytes));
    bytes_ -= removed;
    return removed;
  }

  [[nodiscard]] std::size_t overlap(const std::byte* at, std::size_t bytes) const {
    std::size_t sum = 0;
    for_each_inside(at, bytes, [&](std::byte*, std::size_t part) { sum += part; });
    return sum;
  }
  // Calls visit(at, bytes) for every run of the set inside [at, at + bytes), or of what is not in the set there.
  template <class Visit>
  void for_each_inside(const std::byte* at, std::size_t bytes, const Visit& visit) const {
    const Interval within = interval(at, bytes);
    const auto [first, last] = runs_.equal_range(within);
    for (auto run = first; run != last; ++run) {
      const Interval part = *run & within;
      visit(reinterpret_cast<std::byte*>(part.lower()), part.upper() - part.lower());
    }
  }
  template <class Visit>
  void for_each_outside(const std::byte* at, std::size_t bytes, const Visit& visit) const {
    const std::byte* from = at;
    const auto gap = [&](const std::byte* until) {
      if (until != from) visit(const_cast<std::byte*>(from), static_cast<std::size_t>(until - from));
    };
    for_each_inside(at, bytes, [&](const std::byte* inside, std::size_t part) {
      gap(inside);
      from = inside + part;
    });
    gap(at + bytes);
  }

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t run_count() const { return runs_.iterative_size(); }

 private:
  [[nodiscard]] static Interval interval(const std::byte* at, std::size_t bytes) {
    const auto start = reinterpret_cast<std::uintptr_t>(at);
    return {start, start + bytes};
  }

  boost::icl::interval_set<std::uintptr_t, std::less, Interval> runs_;
  std::size_t bytes_ = 0;
};

}  // namespace farheap::segment
