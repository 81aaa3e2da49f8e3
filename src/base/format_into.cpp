// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/format_into.hpp"

#include <algorithm>

namespace farheap::base {

std::string_view vformat_into(std::span<char> room, fmt::string_view format, fmt::format_args args) {
  const auto written = fmt::vformat_to_n(room.data(), room.size(), format, args);
  return {room.data(), std::min(written.size, room.size())};
}

}  // namespace farheap::base
