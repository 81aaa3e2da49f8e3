// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Paths in the URIs of stores, as the place and as the value of a parameter. There '?' ends the place, '&' a value, and
// '@' begins a snapshot's name, so that a path which has one is written with escapes: "file:/tmp/what%3Fnow/store".
//
// Thread-safety: plain functions.
#pragma once

#include <string>
#include <string_view>

namespace farheap::base {

// '%', '?', '@', '#', ',' and '&' as '%' and two hexadecimal digits; everything else as it is.
[[nodiscard]] std::string escape_path(std::string_view path);

// The way back. Any byte may be escaped; a '%' that no two hexadecimal digits follow stands for itself.
[[nodiscard]] std::string unescape_path(std::string_view text);

// "file:" and the path, escaped.
[[nodiscard]] std::string path_uri(std::string_view engine, std::string_view path);

}  // namespace farheap::base
