// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By which name a heap knows a type: that of typeid. A program without RTTI has the name that the compiler prints;
// a heap takes the two for one type wherever they can be told to be (docs/heaps.md, "What is kept, and what is not").
//
// Thread-safety: any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <typeinfo>

namespace farheap::detail {

// As the compiler prints it: "std::vector<int>".
template <class T>
[[nodiscard]] constexpr const char* printed_with_type() {
  return __PRETTY_FUNCTION__;
}
template <class T>
[[nodiscard]] constexpr std::string_view printed_name() {
  std::string_view text = printed_with_type<T>();  // "... [with T = int]" or "... [T = int]"
  text.remove_prefix(text.find("T = ") + 4);
  text.remove_suffix(1);
  return text;
}

#if defined(__cpp_rtti)
template <class T>
[[nodiscard]] const char* type_name() {
  return typeid(T).name();
}
#else
// Behind a '=', so that nobody takes it for one of typeid's ("x" is long long there); ended by a zero.
template <class T>
inline constexpr auto kPrintedName = [] {
  std::array<char, printed_name<T>().size() + 2> text{'='};
  std::copy_n(printed_name<T>().data(), text.size() - 2, text.data() + 1);
  return text;
}();
template <class T>
[[nodiscard]] const char* type_name() {
  return kPrintedName<T>.data();
}
#endif

}  // namespace farheap::detail
