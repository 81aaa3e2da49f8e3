// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace farheap::os {

namespace {

// As much as there is up to `most`; errno where it cannot be read.
Result<std::string> read_up_to(int file, std::size_t most) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::string text;
  while (text.size() < most) {
    const std::size_t before = text.size(), wanted = std::min(kPiece, most - before);
    text.resize(before + wanted);
    const ssize_t got = read(file, text.data() + before, wanted);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) break;
    if (got < 0 && errno != EINTR) return fail(errno_error(errno, "cannot read", ""));
  }
  return text;
}

}  // namespace

Result<std::string> read_regular_file(const std::string& path, std::size_t most_bytes, const char* what,
                                      const char* remedy) {
  // O_NONBLOCK: a FIFO without a writer is to be refused, not waited for.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return fail(errno_error(errno, what, path, remedy));
  struct stat status;
  if (fstat(file, &status) != 0) {
    const int why = errno;
    close(file);
    return fail(errno_error(why, what, path, remedy));
  }
  if (!S_ISREG(status.st_mode)) {
    close(file);
    return fail(ErrorCode::kUnavailable, what, path, "it is no regular file", remedy);
  }
  // It may grow meanwhile.
  auto text = read_up_to(file, most_bytes + 1);
  close(file);
  if (!text) return fail(text.error().code, what, path, text.error().why, remedy);
  if (text->size() > most_bytes) {
    return fail(ErrorCode::kCorrupt, what, path, fmt::format("it is larger than {} bytes", most_bytes), remedy);
  }
  return text;
}

}  // namespace farheap::os
