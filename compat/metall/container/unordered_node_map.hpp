// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <boost/unordered/unordered_node_map.hpp>
#include <functional>
#include <metall/metall.hpp>
#include <utility>

namespace metall::container {

template <class Key, class T, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>,
          class Allocator = manager::allocator_type<std::pair<const Key, T>>>
using unordered_node_map = boost::unordered_node_map<Key, T, Hash, KeyEqual, Allocator>;

}  // namespace metall::container
