// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers of std:: in a heap. All hand their allocator on: farheap::map<int, farheap::vector<int>> is wholly in the
// heap, and map[7].push_back(1) does what it says.
//
//   auto* words = heap.find_or_construct<farheap::map<farheap::string, int>>("words")(heap.allocator<std::byte>());
//
// They keep raw pointers: for heaps that open at their own address. Hashes of text and numbers are the same in every
// run.
// Thread-safety: as in std::.
#pragma once

#include <compare>
#include <deque>
#include <farheap/scoped_allocator.hpp>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace farheap {

using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;

// Text from outside is compared with text in a heap as it is: index.find("w" + word) makes no copy.
[[nodiscard]] inline bool operator==(const string& a, const std::string& b) noexcept {
  return std::string_view(a) == std::string_view(b);
}
[[nodiscard]] inline std::strong_ordering operator<=>(const string& a, const std::string& b) noexcept {
  return std::string_view(a) <=> std::string_view(b);
}

// std::hash, which knows no strings with allocators; those are found by any text.
template <class Key>
struct hash : std::hash<Key> {};
template <class Allocator>
struct hash<std::basic_string<char, std::char_traits<char>, Allocator>> {
  using is_transparent = void;
  [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept {
    return std::hash<std::string_view>()(text);
  }
};

template <class T>
using vector = std::vector<T, scoped_allocator<T>>;
template <class T>
using deque = std::deque<T, scoped_allocator<T>>;
template <class T>
using list = std::list<T, scoped_allocator<T>>;
template <class T>
using forward_list = std::forward_list<T, scoped_allocator<T>>;

template <class Key, class T, class Less = std::less<>>
using map = std::map<Key, T, Less, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class T, class Less = std::less<>>
using multimap = std::multimap<Key, T, Less, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class Less = std::less<>>
using set = std::set<Key, Less, scoped_allocator<Key>>;
template <class Key, class Less = std::less<>>
using multiset = std::multiset<Key, Less, scoped_allocator<Key>>;

template <class Key, class T, class Hash = hash<Key>, class Equal = std::equal_to<>>
using unordered_map = std::unordered_map<Key, T, Hash, Equal, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class T, class Hash = hash<Key>, class Equal = std::equal_to<>>
using unordered_multimap = std::unordered_multimap<Key, T, Hash, Equal, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class Hash = hash<Key>, class Equal = std::equal_to<>>
using unordered_set = std::unordered_set<Key, Hash, Equal, scoped_allocator<Key>>;
template <class Key, class Hash = hash<Key>, class Equal = std::equal_to<>>
using unordered_multiset = std::unordered_multiset<Key, Hash, Equal, scoped_allocator<Key>>;

}  // namespace farheap
