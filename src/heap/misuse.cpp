// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "heap/misuse.hpp"

#include "base/format_into.hpp"
#include "base/log.hpp"

namespace farheap::heap {

void stop_not_allocated(const void* pointer, std::string_view why) noexcept {
  char text[192];
  base::stop(base::format_into(text, "the program freed {}, which {}", fmt::ptr(pointer), why));
}

}  // namespace farheap::heap
