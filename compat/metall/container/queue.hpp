// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <metall/container/deque.hpp>
#include <queue>

namespace metall::container {

template <class T, class Container = deque<T>>
using queue = std::queue<T, Container>;

}  // namespace metall::container
