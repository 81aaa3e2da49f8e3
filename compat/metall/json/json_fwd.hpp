// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What of metall::json there is, and Boost.JSON, which reads and writes the text. As with Metall, its sources come with
// this header; a program of several files, or one that links Boost.JSON, defines METALL_LINK_WITH_BOOST_JSON.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>

#ifdef METALL_LINK_WITH_BOOST_JSON
#include <boost/json.hpp>
#elif !defined(METALL_BOOST_JSON_SRC_INCLUDED)
#define METALL_BOOST_JSON_SRC_INCLUDED
#include <boost/json/src.hpp>
#endif

#include <metall/container/string.hpp>

namespace metall::json {

using null_type = std::monostate;

template <class Char, class Traits, class Allocator>
using basic_string = container::basic_string<Char, Traits, Allocator>;
template <class Allocator = std::allocator<std::byte>>
using string = basic_string<char, std::char_traits<char>, Allocator>;

template <class Allocator = std::allocator<std::byte>>
class value;
template <class Allocator = std::allocator<std::byte>>
class array;
template <class Char = char, class Traits = std::char_traits<Char>, class Allocator = std::allocator<Char>>
class key_value_pair;
template <class Allocator = std::allocator<std::byte>>
class object;

}  // namespace metall::json
