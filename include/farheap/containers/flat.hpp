// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boost.Unordered's open-addressing tables (1.81) in a heap: the fastest look-up. For heaps that open at their own
// address; elements move when the table grows.
//
// Boost's own keep, while they have no memory, a pointer to a constant of the program, which lies elsewhere in the next
// run: an empty table that was committed could not be looked into any more. So these have room from the start, and keep
// it. One that was moved from has none: assign to it or destroy it before the program ends.
//
// Thread-safety: as in Boost.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <concepts>
#include <cstddef>
#include <farheap/containers/boost_scoped.hpp>
#include <functional>
#include <utility>

namespace farheap::boost_containers {

template <class Table>
class WithRoom : public Table {
 public:
  // As Table's constructors; one without arguments there is none, because the allocator has to be given.
  template <class... Arguments>
    requires(sizeof...(Arguments) > 0 && std::constructible_from<Table, Arguments...>)
  explicit(sizeof...(Arguments) == 1) WithRoom(Arguments&&... arguments)
      : Table(std::forward<Arguments>(arguments)...) {
    keep_room();
  }
  WithRoom(const WithRoom& other) : Table(other) { keep_room(); }
  // One that was moved from gives none: there may be no memory for it.
  // NOLINTNEXTLINE(performance-noexcept-move-constructor)
  WithRoom(WithRoom&& other) : Table(std::move(static_cast<Table&>(other))) { keep_room(); }
  WithRoom(WithRoom&& other, const typename Table::allocator_type& allocator)
      : Table(std::move(static_cast<Table&>(other)), allocator) {
    keep_room();
  }
  WithRoom(const WithRoom& other, const typename Table::allocator_type& allocator)
      : Table(static_cast<const Table&>(other), allocator) {
    keep_room();
  }
  WithRoom& operator=(const WithRoom& other) {
    Table::operator=(other);
    keep_room();
    return *this;
  }
  // NOLINTNEXTLINE(performance-noexcept-move-constructor)
  WithRoom& operator=(WithRoom&& other) {
    Table::operator=(std::move(static_cast<Table&>(other)));
    keep_room();
    return *this;
  }
  ~WithRoom() = default;

  void rehash(std::size_t count) { Table::rehash(std::max<std::size_t>(count, 1)); }
  void reserve(std::size_t count) { Table::reserve(std::max<std::size_t>(count, 1)); }

 private:
  void keep_room() {
    if (this->bucket_count() == 0) Table::reserve(1);
  }
};

template <class Key, class T, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_flat_map =
    WithRoom<boost::unordered_flat_map<Key, T, Hash, Equal, scoped_allocator<std::pair<const Key, T>>>>;
template <class Key, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_flat_set = WithRoom<boost::unordered_flat_set<Key, Hash, Equal, scoped_allocator<Key>>>;

}  // namespace farheap::boost_containers
