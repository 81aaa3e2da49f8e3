// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <boost/container/set.hpp>
#include <functional>
#include <metall/metall.hpp>

namespace metall::container {

template <class Key, class Compare = std::less<Key>, class Allocator = manager::allocator_type<Key>>
using set = boost::container::set<Key, Compare, Allocator>;
template <class Key, class Compare = std::less<Key>, class Allocator = manager::allocator_type<Key>>
using multiset = boost::container::multiset<Key, Compare, Allocator>;

}  // namespace metall::container
