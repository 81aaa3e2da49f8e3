// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text without allocation: inside malloc, in fault handlers, before a process ends. And without a copy of fmt's
// machinery in every source, which fmt::format_to_n() leaves behind.
//
// Thread-safety: any thread, any time, signal handlers included.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string_view>

namespace farheap::base {

// What is too long for `room` is cut; nothing is put behind it.
std::string_view vformat_into(std::span<char> room, fmt::string_view format, fmt::format_args args);

template <class... Args>
std::string_view format_into(std::span<char> room, fmt::format_string<Args...> format, const Args&... args) {
  return vformat_into(room, format, fmt::make_format_args(args...));
}

}  // namespace farheap::base
