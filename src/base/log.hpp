// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Log lines without allocation: they are written from inside malloc and from fault handlers.
// Every line goes to standard error as "farheap: ...", in one write. A line over 1 KiB is cut.
//
// Thread-safety: any thread, any time, signal handlers included.
#pragma once

#include <string_view>

#include "base/format_into.hpp"

namespace farheap::base {

enum class LogLevel { kError, kWarn, kInfo, kDebug };

void set_log_level(LogLevel level);
[[nodiscard]] bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view text);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (!log_enabled(level)) return;
  char buffer[1024];
  log_line(level, vformat_into(buffer, format, fmt::make_format_args(args...)));
}

// Says why and ends the process at once: for states that only a defect in Farheap or lost data can reach.
// Never returns; runs no destructors of the program.
[[noreturn]] void stop(std::string_view why);

}  // namespace farheap::base
