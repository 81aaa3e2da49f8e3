// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace farheap::tool {

// Safe as text and in attributes of HTML, XML and SVG.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace farheap::tool
