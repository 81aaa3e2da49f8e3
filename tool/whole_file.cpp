// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "whole_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace farheap::tool {

// Not through a stream: that throws for a folder.
Result<std::string> whole_file(const std::string& path, const char* what, const char* remedy) {
  const auto why = [&] { return fail(errno_error(errno, what, path, remedy)); };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return why();
  std::string text;
  ssize_t size = 0;
  do {
    constexpr std::size_t kPiece = 1 << 20;
    const std::size_t before = text.size();
    text.resize(before + kPiece);
    size = read(file, text.data() + before, kPiece);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  } while (size > 0);
  const int error = errno;
  close(file);
  errno = error;
  if (size < 0) return why();
  return text;
}

}  // namespace farheap::tool
