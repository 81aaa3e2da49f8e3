// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace metall::mtlldetail {

// [first, last) of part `part` when `length` things go into `parts` parts as even as can be, the longer ones first.
inline std::pair<std::size_t, std::size_t> partial_range(std::size_t length, std::size_t part, std::size_t parts) {
  const std::size_t each = length / parts;
  const std::size_t longer = length % parts;
  const std::size_t first = each * part + std::min(part, longer);
  return {first, first + each + (part < longer ? 1 : 0)};
}

}  // namespace metall::mtlldetail
