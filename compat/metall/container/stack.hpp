// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <metall/container/deque.hpp>
#include <stack>

namespace metall::container {

template <class T, class Container = deque<T>>
using stack = std::stack<T, Container>;

}  // namespace metall::container
