// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/plain_memory.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace farheap::os {
namespace {

struct Line {
  std::uintptr_t start = 0, end = 0;
  PlainMemory kind = PlainMemory::kNo;
};

// "start-end rw-p offset device inode    name": the words are separated by one space, the name by several.
Line parse_line(std::string_view text) {
  Line line;
  const char* at = text.data();
  const char* const end = at + text.size();
  at = std::from_chars(at, end, line.start, 16).ptr;
  if (at == end || *at != '-') return {};
  at = std::from_chars(at + 1, end, line.end, 16).ptr;
  const std::string_view rest(at, static_cast<std::size_t>(end - at));
  const std::size_t device = rest.find(':');
  const bool open = rest.starts_with(" rw-p ");
  if ((!open && !rest.starts_with(" ---p ")) || device == std::string_view::npos) return line;
  const std::size_t inode = rest.find(' ', device) + 1;
  const std::size_t after = rest.find_first_not_of(' ', std::min(rest.find(' ', inode), rest.size()));
  const std::string_view name = after == std::string_view::npos ? "" : rest.substr(after);
  const bool plain = rest.substr(inode).starts_with("0") && (name.empty() || name.starts_with("[anon:"));
  if (plain) line.kind = open ? PlainMemory::kOpen : PlainMemory::kShut;
  return line;
}

}  // namespace

PlainMemory plain_memory(const void* at, std::size_t bytes) {
  const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
  if (file < 0) return PlainMemory::kNo;
  auto next = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = next + bytes;
  char buffer[8192];  // longer than any line
  std::size_t filled = 0;
  bool more = true;
  PlainMemory kind = PlainMemory::kNo;
  while (more && next < end) {
    const long got = syscall(SYS_read, file, buffer + filled, sizeof buffer - filled);
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
    std::string_view text(buffer, filled);
    for (std::size_t line_end; more && (line_end = text.find('\n')) != std::string_view::npos;) {
      const Line line = parse_line(text.substr(0, line_end));
      text.remove_prefix(line_end + 1);
      if (line.end <= next) continue;
      more = next < end && line.start <= next && line.kind != PlainMemory::kNo &&
             (kind == PlainMemory::kNo || kind == line.kind);
      if (!more) continue;
      kind = line.kind;
      next = line.end;
    }
    if (text.size() == sizeof buffer) break;
    filled = text.size();
    std::memmove(buffer, text.data(), filled);
  }
  syscall(SYS_close, file);
  return next >= end ? kind : PlainMemory::kNo;
}

}  // namespace farheap::os
