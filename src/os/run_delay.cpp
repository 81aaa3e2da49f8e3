// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/run_delay.hpp"

#include <fcntl.h>

#include <charconv>
#include <string_view>

#include "base/format_into.hpp"
#include "base/system_call.hpp"

namespace farheap::os {

std::optional<std::int64_t> run_delay_ns(std::uint32_t thread) {
  char path[64];
  path[base::format_into({path, sizeof path - 1}, "/proc/self/task/{}/schedstat", thread).size()] = '\0';
  const long file = base::system_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  char text[96];
  const long size = base::system_call(SYS_read, file, text, sizeof text);
  base::system_call(SYS_close, file);
  // "RUN DELAY SLICES"
  const std::string_view line(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t blank = line.find(' ');
  std::int64_t delay = 0;
  if (blank == line.npos) return std::nullopt;
  const auto read = std::from_chars(line.data() + blank + 1, line.data() + line.size(), delay);
  return read.ec == std::errc() ? std::optional(delay) : std::nullopt;
}

}  // namespace farheap::os
