// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values by text: one value for a key if it is `unique`, any number otherwise.
//
// Thread-safety: one thread changes, or many read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <metall/container/scoped_allocator.hpp>
#include <metall/container/string.hpp>
#include <metall/container/string_key_store_locator.hpp>
#include <metall/container/unordered_map.hpp>
#include <metall/detail/hash.hpp>
#include <metall/metall.hpp>
#include <string_view>
#include <type_traits>
#include <utility>

namespace metall::container {

template <class Value, class Allocator = manager::allocator_type<std::byte>>
class string_key_store {
  template <class T>
  using other_allocator = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
  using text_type = basic_string<char, std::char_traits<char>, other_allocator<char>>;
  struct hash {
    using is_transparent = void;
    std::uint64_t seed;
    std::size_t operator()(std::string_view key) const noexcept {
      return mtlldetail::hash_bytes(key.data(), key.size(), seed);
    }
    std::size_t operator()(const text_type& key) const noexcept {
      return (*this)(std::string_view(key.data(), key.size()));
    }
  };
  struct equal {
    using is_transparent = void;
    static std::string_view view(std::string_view key) noexcept { return key; }
    static std::string_view view(const text_type& key) noexcept { return {key.data(), key.size()}; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const noexcept {
      return view(a) == view(b);
    }
  };
  using map_type = unordered_multimap<text_type, Value, hash, equal,
                                      scoped_allocator_adaptor<other_allocator<std::pair<const text_type, Value>>>>;

 public:
  using key_type = std::string_view;
  using value_type = Value;
  using allocator_type = Allocator;
  using locator_type = string_key_store_locator<typename map_type::const_iterator>;

  explicit string_key_store(const allocator_type& allocator = allocator_type())
      : string_key_store(false, kDefaultSeed, allocator) {}
  string_key_store(bool unique, std::uint64_t hash_seed, const allocator_type& allocator = allocator_type())
      : unique_(unique), seed_(hash_seed), map_(0, hash{hash_seed}, equal{}, allocator) {}
  string_key_store(const string_key_store&) = default;
  string_key_store(const string_key_store& other, const allocator_type& allocator)
      : unique_(other.unique_), seed_(other.seed_), map_(other.map_, allocator) {}
  string_key_store(string_key_store&&) noexcept = default;
  string_key_store(string_key_store&& other, const allocator_type& allocator)
      : unique_(other.unique_), seed_(other.seed_), map_(std::move(other.map_), allocator) {}
  string_key_store& operator=(const string_key_store&) = default;
  string_key_store& operator=(string_key_store&&) noexcept = default;

  // With a value made from nothing. False if the key has to be unique and is there.
  bool insert(const key_type& key) {
    if (unique_ && map_.contains(key)) return false;
    map_.emplace(text(key), std::make_obj_using_allocator<value_type>(get_allocator()));
    return true;
  }
  // If the key has to be unique and is there, its value is replaced. True.
  bool insert(const key_type& key, const value_type& value) { return insert_value(key, value); }
  bool insert(const key_type& key, value_type&& value) { return insert_value(key, std::move(value)); }

  void clear() { map_.clear(); }
  std::size_t size() const { return map_.size(); }
  std::size_t count(const key_type& key) const { return map_.count(key); }
  key_type key(const locator_type& position) const { return equal::view(position.iterator_->first); }
  value_type& value(const locator_type& position) {
    return map_.erase(position.iterator_, position.iterator_)->second;  // nothing is erased: it is made non-const
  }
  const value_type& value(const locator_type& position) const { return position.iterator_->second; }
  locator_type find(const key_type& key) const { return locator_type(map_.find(key)); }
  std::pair<locator_type, locator_type> equal_range(const key_type& key) const {
    const auto range = map_.equal_range(key);
    return {locator_type(range.first), locator_type(range.second)};
  }
  locator_type begin() const { return locator_type(map_.begin()); }
  locator_type end() const { return locator_type(map_.end()); }
  // How many were there.
  std::size_t erase(const key_type& key) { return map_.erase(key); }
  // The next one.
  locator_type erase(const locator_type& position) {
    return position == end() ? end() : locator_type(map_.erase(position.iterator_));
  }
  // Metall's store probes beside a hash that is taken; this one compares keys, and never does.
  std::size_t max_id_probe_distance() const { return 0; }
  void rehash() { map_.rehash(0); }
  allocator_type get_allocator() const { return allocator_type(map_.get_allocator().outer_allocator()); }
  bool unique() const { return unique_; }
  std::uint64_t hash_seed() const { return seed_; }

 private:
  static constexpr std::uint64_t kDefaultSeed = 123;

  text_type text(const key_type& key) const {
    return text_type(key.data(), key.size(), typename text_type::allocator_type(get_allocator()));
  }
  template <class V>
  bool insert_value(const key_type& key, V&& value) {
    if (const auto there = unique_ ? map_.find(key) : map_.end(); there != map_.end()) {
      there->second = std::forward<V>(value);
    } else {
      map_.emplace(text(key), std::forward<V>(value));
    }
    return true;
  }

  bool unique_;
  std::uint64_t seed_;
  map_type map_;
};

}  // namespace metall::container
