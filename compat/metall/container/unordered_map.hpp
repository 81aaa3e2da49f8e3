// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <boost/unordered_map.hpp>
#include <functional>
#include <metall/metall.hpp>
#include <utility>

namespace metall::container {

template <class Key, class T, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>,
          class Allocator = manager::allocator_type<std::pair<const Key, T>>>
using unordered_map = boost::unordered_map<Key, T, Hash, KeyEqual, Allocator>;
template <class Key, class T, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>,
          class Allocator = manager::allocator_type<std::pair<const Key, T>>>
using unordered_multimap = boost::unordered_multimap<Key, T, Hash, KeyEqual, Allocator>;

}  // namespace metall::container
