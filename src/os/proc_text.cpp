// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/proc_text.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace farheap::os {

static int open_to_read(const char* path, int more) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | more));
}

std::string_view read_proc_text(const char* path, std::span<char> room) {
  const int file = open_to_read(path, 0);
  if (file < 0) return {};
  const long bytes = syscall(SYS_read, file, room.data(), room.size());
  syscall(SYS_close, file);
  return {room.data(), static_cast<std::size_t>(std::max(bytes, 0l))};
}

Look look_through(const char* folder, const std::function<bool(const char*)>& is_it) {
  const int file = open_to_read(folder, O_DIRECTORY);
  if (file < 0) return Look::kFailed;
  bool is_found = false;
  alignas(dirent64) char entries[4096];
  long bytes = 0;
  while (!is_found && (bytes = syscall(SYS_getdents64, file, entries, sizeof entries)) > 0) {
    for (long at = 0; at < bytes && !is_found;) {
      const auto& entry = *reinterpret_cast<const dirent64*>(entries + at);
      at += entry.d_reclen;
      is_found = entry.d_name[0] != '.' && is_it(entry.d_name);
    }
  }
  syscall(SYS_close, file);
  if (is_found) return Look::kFound;
  return bytes < 0 ? Look::kFailed : Look::kNone;
}

}  // namespace farheap::os
