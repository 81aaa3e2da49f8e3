// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <metall/container/scoped_allocator.hpp>
#include <metall/container/vector.hpp>
#include <metall/json/json_fwd.hpp>
#include <metall/json/key_value_pair.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace metall::json {

// Its members lie one after the other, in the order they came in: a key is looked for one by one.
template <class Allocator>
class object {
 public:
  using allocator_type = Allocator;
  using value_type = key_value_pair<char, std::char_traits<char>, Allocator>;
  using key_type = std::string_view;
  using mapped_type = value<Allocator>;

 private:
  using storage_allocator_type =
      container::scoped_allocator_adaptor<typename std::allocator_traits<Allocator>::template rebind_alloc<value_type>>;
  using storage_type = container::vector<value_type, storage_allocator_type>;

 public:
  using iterator = typename storage_type::iterator;
  using const_iterator = typename storage_type::const_iterator;

  object() : object(Allocator()) {}
  explicit object(const Allocator& allocator) : storage_(storage_allocator_type(allocator)) {}
  object(const object&) = default;
  object(const object& other, const Allocator& allocator)
      : storage_(other.storage_, storage_allocator_type(allocator)) {}
  object(object&&) noexcept = default;
  object(object&& other, const Allocator& allocator)
      : storage_(std::move(other.storage_), storage_allocator_type(allocator)) {}
  object& operator=(const object&) = default;
  object& operator=(object&&) noexcept = default;
  void swap(object& other) noexcept { storage_.swap(other.storage_); }
  friend void swap(object& a, object& b) noexcept { a.swap(b); }

  // Made with null if it is not there.
  mapped_type& operator[](const key_type& key) {
    if (const auto found = find(key); found != end()) return found->value();
    storage_.emplace_back(key, mapped_type(get_allocator()));
    return storage_.back().value();
  }
  // std::out_of_range.
  const mapped_type& operator[](const key_type& key) const { return at(key); }
  mapped_type& at(const key_type& key) { return const_cast<mapped_type&>(std::as_const(*this).at(key)); }
  const mapped_type& at(const key_type& key) const {
    const auto found = find(key);
    if (found == end()) throw std::out_of_range("this JSON object has no member " + std::string(key));
    return found->value();
  }
  bool contains(const key_type& key) const { return find(key) != end(); }
  std::size_t count(const key_type& key) const { return contains(key) ? 1 : 0; }
  iterator find(const key_type& key) { return std::find_if(begin(), end(), has(key)); }
  const_iterator find(const key_type& key) const { return std::find_if(begin(), end(), has(key)); }
  iterator begin() { return storage_.begin(); }
  const_iterator begin() const { return storage_.begin(); }
  iterator end() { return storage_.end(); }
  const_iterator end() const { return storage_.end(); }
  std::size_t size() const { return storage_.size(); }
  // The next one.
  iterator erase(iterator position) { return position == end() ? end() : storage_.erase(position); }
  iterator erase(const_iterator position) {
    return position == std::as_const(*this).end() ? end() : storage_.erase(position);
  }
  iterator erase(const key_type& key) { return erase(find(key)); }
  allocator_type get_allocator() const noexcept { return allocator_type(storage_.get_allocator().outer_allocator()); }

  // Whatever the order.
  friend bool operator==(const object& a, const object& b) noexcept { return equal(a, b); }
  friend bool operator==(const object& a, const boost::json::object& b) noexcept { return equal(a, b); }

 private:
  static auto has(key_type key) {
    return [key](const value_type& member) { return member.key() == key; };
  }
  template <class Other>
  static bool equal(const object& a, const Other& b) {
    if (a.size() != b.size()) return false;
    return std::all_of(a.begin(), a.end(), [&](const value_type& member) {
      const auto found = b.find({member.key().data(), member.key().size()});
      return found != b.end() && member.value() == found->value();
    });
  }

  storage_type storage_;
};

}  // namespace metall::json
