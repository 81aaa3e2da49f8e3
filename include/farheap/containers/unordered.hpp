// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boost.Unordered's node containers in a heap, with raw pointers: for heaps that open at their own address. References
// to elements stay good while the table grows. All hand their allocator on; boost::hash is the same in every run.
//
// Thread-safety: as in Boost.
#pragma once

#include <boost/unordered_map.hpp>
#include <boost/unordered_set.hpp>
#include <farheap/containers/boost_scoped.hpp>
#include <functional>
#include <utility>

namespace farheap::boost_containers {

template <class Key, class T, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_map = boost::unordered_map<Key, T, Hash, Equal, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class T, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_multimap = boost::unordered_multimap<Key, T, Hash, Equal, scoped_allocator<std::pair<const Key, T>>>;
template <class Key, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_set = boost::unordered_set<Key, Hash, Equal, scoped_allocator<Key>>;
template <class Key, class Hash = boost::hash<Key>, class Equal = std::equal_to<>>
using unordered_multiset = boost::unordered_multiset<Key, Hash, Equal, scoped_allocator<Key>>;

}  // namespace farheap::boost_containers
