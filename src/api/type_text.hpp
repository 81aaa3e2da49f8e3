// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Types as people read them. A heap keeps what typeid names ("St6vectorIiSaIiEE"), or, of a program without RTTI, what
// the compiler prints, behind a '='.
//
// Thread-safety: any thread.
#pragma once

#include <string>
#include <string_view>

namespace farheap::api {

// All of it: "std::vector<int, std::allocator<int> >".
[[nodiscard]] std::string readable_type(std::string_view kept);
// Without what everybody knows: std::vector<int>, std::string, farheap::map<farheap::string, int>.
[[nodiscard]] std::string short_type(std::string_view kept);
// Whether two names are of one type, each as typeid or a compiler tells it. Of types that only a compiler's printing
// tells, and that have template arguments by default other than std::'s, that is not known: false.
[[nodiscard]] bool is_same_type(std::string_view a, std::string_view b);

}  // namespace farheap::api
