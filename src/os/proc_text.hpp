// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of /proc, read without an allocation, by system calls alone: also where the program's heap may not be touched.
//
// Thread-safety: any thread.
#pragma once

#include <functional>
#include <span>
#include <string_view>

namespace farheap::os {

// As much of it as fits into `room`; empty if it cannot be read. No descriptor stays.
[[nodiscard]] std::string_view read_proc_text(const char* path, std::span<char> room);

enum class Look { kFound, kNone, kFailed };
// Calls `is_it` with each name in a folder of numbers (/proc/PID/task) until it answers true.
[[nodiscard]] Look look_through(const char* folder, const std::function<bool(const char*)>& is_it);

}  // namespace farheap::os
