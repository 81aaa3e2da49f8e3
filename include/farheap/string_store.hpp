// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values by text, in a heap: asked with any std::string_view, without making a key of the heap's first; with one value
// for a key, or with several.
//
//   using Ages = farheap::string_key_store<int>;
//   auto& ages = *heap.find_or_construct<Ages>("ages")(heap.allocator<std::byte>());
//   ages.insert("Ada", 36);
//   if (const auto found = ages.find("Ada"); found != ages.end()) use(found->second);
//
// A hash table of prime length, one piece of memory for each entry (and one for a key of 24 bytes or more). Hashes are
// XXH3's, which are the same everywhere. Entries stay where they are until they are erased; iterators until it grows.
//
// Thread-safety: as of std:: containers.
#pragma once

#include <boost/container/scoped_allocator.hpp>
#include <boost/container/string.hpp>
#include <boost/unordered_map.hpp>
#include <cstddef>
#include <cstdint>
#include <farheap/allocator.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

namespace farheap {

namespace detail {
[[nodiscard]] std::uint64_t hash_text(std::string_view text) noexcept;
}

// How many entries one key may have.
enum class KeyUse : std::uint8_t { kUnique, kRepeated };

// `Allocator`: allocator, offset_allocator, or a fallback form of them.
template <class Value, class Allocator = allocator<std::byte>>
class string_key_store {
  template <class T>
  using Rebound = typename std::allocator_traits<Allocator>::template rebind_alloc<T>;
  struct Hash {
    using is_transparent = void;
    [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept { return detail::hash_text(text); }
  };
  struct Equal {
    using is_transparent = void;
    [[nodiscard]] bool operator()(std::string_view a, std::string_view b) const noexcept { return a == b; }
  };

 public:
  using key_type = boost::container::basic_string<char, std::char_traits<char>, Rebound<char>>;
  using mapped_type = Value;
  using value_type = std::pair<const key_type, Value>;
  using allocator_type = Allocator;

 private:
  using Table = boost::unordered_multimap<key_type, Value, Hash, Equal,
                                          boost::container::scoped_allocator_adaptor<Rebound<value_type>>>;

 public:
  using iterator = typename Table::iterator;
  using const_iterator = typename Table::const_iterator;

  explicit string_key_store(const allocator_type& allocator, KeyUse keys = KeyUse::kUnique)
      : table_(typename Table::allocator_type(Rebound<value_type>(allocator))), keys_(keys) {}
  string_key_store(const string_key_store& other, const allocator_type& allocator)
      : table_(other.table_, typename Table::allocator_type(Rebound<value_type>(allocator))), keys_(other.keys_) {}
  string_key_store(string_key_store&& other, const allocator_type& allocator)
      : table_(std::move(other.table_), typename Table::allocator_type(Rebound<value_type>(allocator))),
        keys_(other.keys_) {}
  string_key_store(const string_key_store&) = default;
  string_key_store(string_key_store&&) = default;
  string_key_store& operator=(const string_key_store&) = default;
  string_key_store& operator=(string_key_store&&) = default;
  ~string_key_store() = default;

  // Made from `value`, which gets the allocator where its type takes one. With unique keys: false, with the entry that
  // is there, unchanged.
  template <class... Arguments>
  std::pair<iterator, bool> insert(std::string_view key, Arguments&&... value) {
    if (keys_ == KeyUse::kUnique) {
      if (const iterator there = table_.find(key); there != table_.end()) return {there, false};
    }
    return {table_.emplace(std::piecewise_construct, std::forward_as_tuple(key.data(), key.size()),
                           std::forward_as_tuple(std::forward<Arguments>(value)...)),
            true};
  }
  // The first entry of that key gets the value, or a new one is made; true: a new one.
  template <class Argument>
  bool insert_or_assign(std::string_view key, Argument&& value) {
    if (const iterator there = table_.find(key); there != table_.end()) {
      there->second = std::forward<Argument>(value);
      return false;
    }
    return insert(key, std::forward<Argument>(value)).second;
  }
  // With several of that key: one of them.
  [[nodiscard]] iterator find(std::string_view key) { return table_.find(key); }
  [[nodiscard]] const_iterator find(std::string_view key) const { return table_.find(key); }
  [[nodiscard]] bool contains(std::string_view key) const { return find(key) != end(); }
  [[nodiscard]] std::size_t count(std::string_view key) const { return table_.count(key); }
  [[nodiscard]] std::pair<iterator, iterator> equal_range(std::string_view key) { return table_.equal_range(key); }
  [[nodiscard]] std::pair<const_iterator, const_iterator> equal_range(std::string_view key) const {
    return table_.equal_range(key);
  }
  // All of that key; how many.
  std::size_t erase(std::string_view key) {
    const auto [first, last] = table_.equal_range(key);
    const auto erased = static_cast<std::size_t>(std::distance(first, last));
    table_.erase(first, last);
    return erased;
  }
  // The one after it.
  iterator erase(const_iterator entry) { return table_.erase(entry); }
  void clear() noexcept { table_.clear(); }

  // In no order, but those of one key together.
  [[nodiscard]] iterator begin() noexcept { return table_.begin(); }
  [[nodiscard]] iterator end() noexcept { return table_.end(); }
  [[nodiscard]] const_iterator begin() const noexcept { return table_.begin(); }
  [[nodiscard]] const_iterator end() const noexcept { return table_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }
  [[nodiscard]] bool empty() const noexcept { return table_.empty(); }
  void reserve(std::size_t entries) { table_.reserve(entries); }
  [[nodiscard]] KeyUse keys() const noexcept { return keys_; }
  [[nodiscard]] allocator_type get_allocator() const noexcept {
    return allocator_type(table_.get_allocator().outer_allocator());
  }

 private:
  Table table_;
  KeyUse keys_;
};

}  // namespace farheap
