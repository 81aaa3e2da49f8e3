// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "output_file.hpp"

#include <unistd.h>

#include <cerrno>

#include "os/named_file.hpp"

namespace farheap::tool {

Status write_output(const std::string& path, std::string_view text, const char* what) {
  const auto file = os::open_output_file(path, 0600, what);
  if (!file) return fail(file.error());
  int why = 0;
  while (!text.empty() && why == 0) {
    const ssize_t written = write(*file, text.data(), text.size());
    if (written >= 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) why = errno;
  }
  if (close(*file) != 0 && why == 0) why = errno;
  return why == 0 ? Status{} : fail(errno_error(why, what, path));
}

}  // namespace farheap::tool
