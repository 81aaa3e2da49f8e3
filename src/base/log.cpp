// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/log.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace farheap::base {

static std::atomic<LogLevel> g_level{LogLevel::kWarn};

void set_log_level(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }

bool log_enabled(LogLevel level) { return level <= g_level.load(std::memory_order_relaxed); }

void log_line(LogLevel, std::string_view text) {
  constexpr std::string_view kPrefix = "farheap: ";
  char line[1100];
  std::size_t size = std::min(text.size(), sizeof line - kPrefix.size() - 1);
  std::memcpy(line, kPrefix.data(), kPrefix.size());
  std::memcpy(line + kPrefix.size(), text.data(), size);
  size += kPrefix.size();
  line[size++] = '\n';
  // Nothing can be done about a standard error that is gone.
  [[maybe_unused]] auto ignored = write(STDERR_FILENO, line, size);
}

void stop(std::string_view why) {
  log_line(LogLevel::kError, why);
  std::abort();
}

}  // namespace farheap::base
