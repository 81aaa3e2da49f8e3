// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Containers that work wherever their heap is mapped: farheap::offset_allocator with Boost.Container and the node
// containers of Boost.Unordered, which keep nothing but the allocator's pointers. Their elements must not keep raw
// pointers into the heap either. All hand their allocator on.
//
//   auto* words = heap.construct<farheap::offset::map<farheap::offset::string, int>>("words")(
//       farheap::offset_allocator<std::byte>(heap));
//
// Not here, because they keep raw pointers whatever the allocator's are (docs/containers.md): std::unordered_map,
// std::forward_list, std::vector<bool>, Boost.Unordered's flat tables. std::list, std::map, std::set and std::string do
// not compile, and Boost's stable_vector crashes in clear() when gcc 12 optimises it.
// Thread-safety: as in Boost.
#pragma once

#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/flat_set.hpp>
#include <boost/container/list.hpp>
#include <boost/container/map.hpp>
#include <boost/container/scoped_allocator.hpp>
#include <boost/container/set.hpp>
#include <boost/container/slist.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <boost/unordered_map.hpp>
#include <boost/unordered_set.hpp>
#include <farheap/fallback_allocator.hpp>
#include <farheap/offset_allocator.hpp>
#include <functional>
#include <utility>

namespace farheap::offset {

template <class T>
using allocator = offset_allocator<T>;
template <class T>
using scoped_allocator = boost::container::scoped_allocator_adaptor<offset_allocator<T>>;
template <class T>
using fallback_allocator = basic_fallback_allocator<offset_allocator<T>>;
template <class T>
using scoped_fallback_allocator = boost::container::scoped_allocator_adaptor<fallback_allocator<T>>;

using string = boost::container::basic_string<char, std::char_traits<char>, offset_allocator<char>>;

template <class T>
using vector = boost::container::vector<T, scoped_allocator<T>>;
template <class T>
using deque = boost::container::deque<T, scoped_allocator<T>>;
template <class T>
using list = boost::container::list<T, scoped_allocator<T>>;
template <class T>
using slist = boost::container::slist<T, scoped_allocator<T>>;

template <class Key, class T, class Less = std::less<>>
using map = boost::container::map<Key, T, Less, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class T, class Less = std::less<>>
using multimap = boost::container::multimap<Key, T, Less, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class Less = std::less<>>
using set = boost::container::set<Key, Less, scoped_allocator<Key>>;
template <class Key, class Less = std::less<>>
using multiset = boost::container::multiset<Key, Less, scoped_allocator<Key>>;
template <class Key, class T, class Less = std::less<>>
using flat_map = boost::container::flat_map<Key, T, Less, scoped_allocator<std::pair<Key, T>>>;
template <class Key, class Less = std::less<>>
using flat_set = boost::container::flat_set<Key, Less, scoped_allocator<Key>>;

template <class Key, class T, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_map = boost::unordered_map<Key, T, Hash, Equal, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class T, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_multimap = boost::unordered_multimap<Key, T, Hash, Equal, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_set = boost::unordered_set<Key, Hash, Equal, scoped_allocator<Key>>;
template <class Key, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_multiset = boost::unordered_multiset<Key, Hash, Equal, scoped_allocator<Key>>;

}  // namespace farheap::offset
