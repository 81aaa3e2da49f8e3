// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <metall/container/vector.hpp>
#include <queue>

namespace metall::container {

template <class T, class Container = vector<T>, class Compare = std::less<typename Container::value_type>>
using priority_queue = std::priority_queue<T, Container, Compare>;

}  // namespace metall::container
