// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/misuse.hpp"

#include <algorithm>

#include "base/log.hpp"

namespace farheap::heap {

void stop_not_allocated(const void* pointer, std::string_view why) noexcept {
  char text[192];
  auto written = fmt::format_to_n(text, sizeof text, "the program freed {}, which {}", fmt::ptr(pointer), why);
  base::stop({text, std::min(written.size, sizeof text)});
}

}  // namespace farheap::heap
