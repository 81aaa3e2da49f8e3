// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <boost/container/deque.hpp>
#include <metall/metall.hpp>

namespace metall::container {

template <class T, class Allocator = manager::allocator_type<T>>
using deque = boost::container::deque<T, Allocator>;

}  // namespace metall::container
