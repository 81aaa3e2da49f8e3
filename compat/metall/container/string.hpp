// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <boost/container/string.hpp>
#include <metall/metall.hpp>
#include <string>

namespace metall::container {

template <class Char, class Traits = std::char_traits<Char>, class Allocator = manager::allocator_type<Char>>
using basic_string = boost::container::basic_string<Char, Traits, Allocator>;
using string = basic_string<char>;
using wstring = basic_string<wchar_t>;

}  // namespace metall::container
