// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocators that a container hands on to its elements, so that a map of strings is wholly in the heap:
//
//   using Text = std::basic_string<char, std::char_traits<char>, farheap::allocator<char>>;
//   using Names = std::vector<Text, farheap::scoped_allocator<Text>>;
//   auto* names = heap.construct<Names>("names")(heap.allocator<std::byte>());
//   names->emplace_back("in the heap");
//
// For containers of std::; those of Boost want one of their own (farheap/containers/boost_scoped.hpp).
// Thread-safety: any thread.
#pragma once

#include <farheap/allocator.hpp>
#include <farheap/fallback_allocator.hpp>
#include <scoped_allocator>

namespace farheap {

template <class T>
using scoped_allocator = std::scoped_allocator_adaptor<allocator<T>>;
template <class T>
using scoped_fallback_allocator = std::scoped_allocator_adaptor<fallback_allocator<T>>;

}  // namespace farheap
