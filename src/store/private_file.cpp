// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/private_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/named_file.hpp"

namespace farheap::store {

Result<std::size_t> read_private_file(const std::string& file, std::span<char> into, PrivateFileUse use) {
  const int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return fail(errno_error(errno, use.what, file, fmt::format("name a file with {}", use.option)));
  struct stat status{};
  const bool is_known = fstat(opened, &status) == 0;
  if (is_known && S_ISDIR(status.st_mode)) {
    close(opened);
    return fail(ErrorCode::kInvalidArgument, use.what, file, "it is a folder",
                fmt::format("name a file with {}", use.option));
  }
  if (!is_known || (status.st_mode & 077) != 0) {
    close(opened);
    return fail(ErrorCode::kPermission, use.what, file,
                fmt::format("others than its owner may use it (mode {:04o})", status.st_mode & 07777),
                fmt::format("chmod 600 {}", file));
  }
  // Who may change it decides which key is used.
  if (Status trusted = os::check_trusted_file(opened, file, use.what); !trusted) {
    close(opened);
    return fail(std::move(trusted.error()));
  }
  std::size_t bytes = 0;
  ssize_t got = 0;
  while (bytes < into.size() && (got = read(opened, into.data() + bytes, into.size() - bytes)) > 0) {
    bytes += static_cast<std::size_t>(got);
  }
  const int why = got < 0 ? errno : 0;
  close(opened);
  if (why != 0) return fail(errno_error(why, use.what, file));
  return bytes;
}

Result<std::string> read_trusted_file(const std::string& file, const char* what, TrustedFile kind) {
  const int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) {
    Error error = errno_error(errno, what, file);
    error.why = fmt::format("it cannot be read ({})", error.why);
    return fail(std::move(error));
  }
  const auto give_up = [&](Error error) {
    close(opened);
    return fail(std::move(error));
  };
  if (kind != TrustedFile::kAnybodys) {
    if (Status trusted = os::check_trusted_file(opened, file, what); !trusted) return give_up(trusted.error());
  }
  struct stat status{};
  if (fstat(opened, &status) != 0) return give_up(errno_error(errno, what, file));
  const mode_t others = status.st_uid == 0 ? 037 : 077;
  if (kind == TrustedFile::kKey && (status.st_mode & others) != 0) {
    return give_up({ErrorCode::kPermission, what, file,
                    fmt::format("others than its owner may use it (mode {:04o})", status.st_mode & 07777),
                    fmt::format("chmod 600 {}", file)});
  }
  std::string text;
  text.reserve(static_cast<std::size_t>(status.st_size) + 2);  // so that no half of a key stays behind
  char piece[4096];
  ssize_t got = 0;
  while ((got = read(opened, piece, sizeof piece)) > 0) text.append(piece, static_cast<std::size_t>(got));
  const int why = errno;
  explicit_bzero(piece, sizeof piece);
  if (got < 0) return give_up(errno_error(why, what, file));
  close(opened);
  return text;
}

}  // namespace farheap::store
