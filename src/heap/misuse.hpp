// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said before the program is stopped for a wrong free() or realloc().
//
// Thread-safety: any thread.
#pragma once

#include <string_view>

namespace farheap::heap {

[[noreturn]] void stop_not_allocated(const void* pointer, std::string_view why) noexcept;

}  // namespace farheap::heap
