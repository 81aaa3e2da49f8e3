// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <boost/unordered_set.hpp>
#include <functional>
#include <metall/metall.hpp>

namespace metall::container {

template <class Key, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>,
          class Allocator = manager::allocator_type<Key>>
using unordered_set = boost::unordered_set<Key, Hash, KeyEqual, Allocator>;
template <class Key, class Hash = std::hash<Key>, class KeyEqual = std::equal_to<Key>,
          class Allocator = manager::allocator_type<Key>>
using unordered_multiset = boost::unordered_multiset<Key, Hash, KeyEqual, Allocator>;

}  // namespace metall::container
