// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boost.Container in a heap, with raw pointers: for heaps that open at their own address. All hand their allocator on.
//
// Thread-safety: as in Boost.
#pragma once

#include <boost/container/deque.hpp>
#include <boost/container/flat_map.hpp>
#include <boost/container/flat_set.hpp>
#include <boost/container/list.hpp>
#include <boost/container/map.hpp>
#include <boost/container/set.hpp>
#include <boost/container/slist.hpp>
#include <boost/container/stable_vector.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <farheap/containers/boost_scoped.hpp>
#include <functional>
#include <utility>

namespace farheap::boost_containers {

using string = boost::container::basic_string<char, std::char_traits<char>, allocator<char>>;

template <class T>
using vector = boost::container::vector<T, scoped_allocator<T>>;
template <class T>
using stable_vector = boost::container::stable_vector<T, scoped_allocator<T>>;
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

// One sorted array each: small and quick to search, slow to insert into when long.
template <class Key, class T, class Less = std::less<>>
using flat_map = boost::container::flat_map<Key, T, Less, scoped_allocator<std::pair<Key, T>>>;
template <class Key, class T, class Less = std::less<>>
using flat_multimap = boost::container::flat_multimap<Key, T, Less, scoped_allocator<std::pair<Key, T>>>;
template <class Key, class Less = std::less<>>
using flat_set = boost::container::flat_set<Key, Less, scoped_allocator<Key>>;
template <class Key, class Less = std::less<>>
using flat_multiset = boost::container::flat_multiset<Key, Less, scoped_allocator<Key>>;

}  // namespace farheap::boost_containers
