// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocator of the aliases for Boost's containers: it hands itself on to the elements. Boost.Container's maps make
// their pairs in a way of their own, which std::scoped_allocator_adaptor does not reach into.
#pragma once

#include <boost/container/scoped_allocator.hpp>
#include <farheap/allocator.hpp>

namespace farheap::boost_containers {

template <class T>
using scoped_allocator = boost::container::scoped_allocator_adaptor<allocator<T>>;

}  // namespace farheap::boost_containers
