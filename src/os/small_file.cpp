// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace farheap::os {

Result<std::string> read_small_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(errno_error(errno, "cannot read", path));
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(file, buffer, sizeof buffer)) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const int why = errno;
  close(file);
  if (got < 0) return fail(errno_error(why, "cannot read", path));
  if (text.empty()) text.push_back('\n');
  return text;
}

Status write_small_file(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return fail(errno_error(errno, "cannot write", path));
  const ssize_t put = write(file, text.data(), text.size());
  const int why = errno;
  close(file);
  if (put != static_cast<ssize_t>(text.size())) return fail(errno_error(put < 0 ? why : EIO, "cannot write", path));
  return {};
}

}  // namespace farheap::os
