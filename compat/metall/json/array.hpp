// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <metall/container/scoped_allocator.hpp>
#include <metall/container/vector.hpp>
#include <metall/json/json_fwd.hpp>
#include <utility>

namespace metall::json {

template <class Allocator>
class array {
 public:
  using value_type = value<Allocator>;
  using allocator_type = Allocator;

 private:
  using storage_allocator_type =
      container::scoped_allocator_adaptor<typename std::allocator_traits<Allocator>::template rebind_alloc<value_type>>;
  using storage_type = container::vector<value_type, storage_allocator_type>;

 public:
  using iterator = typename storage_type::iterator;
  using const_iterator = typename storage_type::const_iterator;
  using reference = value_type&;
  using const_reference = const value_type&;

  array() : array(Allocator()) {}
  explicit array(const Allocator& allocator) : storage_(storage_allocator_type(allocator)) {}
  array(const array&) = default;
  array(const array& other, const Allocator& allocator) : storage_(other.storage_, storage_allocator_type(allocator)) {}
  array(array&&) noexcept = default;
  array(array&& other, const Allocator& allocator)
      : storage_(std::move(other.storage_), storage_allocator_type(allocator)) {}
  array& operator=(const array&) = default;
  array& operator=(array&&) noexcept = default;
  void swap(array& other) noexcept { storage_.swap(other.storage_); }
  friend void swap(array& a, array& b) noexcept { a.swap(b); }

  std::size_t size() const noexcept { return storage_.size(); }
  std::size_t capacity() const noexcept { return storage_.capacity(); }
  void resize(std::size_t size) { storage_.resize(size, value_type(get_allocator())); }  // with nulls
  void clear() { storage_.clear(); }
  // Requires: index < size().
  reference operator[](std::size_t index) { return storage_[index]; }
  const_reference operator[](std::size_t index) const { return storage_[index]; }
  iterator begin() { return storage_.begin(); }
  const_iterator begin() const { return storage_.begin(); }
  iterator end() { return storage_.end(); }
  const_iterator end() const { return storage_.end(); }
  iterator erase(const_iterator position) { return storage_.erase(position); }
  void push_back(const value_type& value) { storage_.push_back(value); }
  void push_back(value_type&& value) { storage_.push_back(std::move(value)); }
  allocator_type get_allocator() const noexcept { return allocator_type(storage_.get_allocator().outer_allocator()); }

  friend bool operator==(const array& a, const array& b) noexcept { return equal(a, b); }
  friend bool operator==(const array& a, const boost::json::array& b) noexcept { return equal(a, b); }

 private:
  template <class Other>
  static bool equal(const array& a, const Other& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
  }

  storage_type storage_;
};

}  // namespace metall::json
