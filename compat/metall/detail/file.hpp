// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The helpers of Metall's own that its examples and its users' programs call. All return false on error.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <metall/logger.hpp>
#include <system_error>

namespace metall::mtlldetail {

inline bool file_exist(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

inline bool directory_exist(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// With those above it. True if it is there already.
inline bool create_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) logger::out(logger::level::error, __FILE__, __LINE__, error.message().c_str());
  return !error;
}

inline bool create_file(const std::filesystem::path& path) {
  if (directory_exist(path)) return false;
  if (file_exist(path)) return true;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);  // through no link
  if (file >= 0) ::close(file);
  return file >= 0;
}

// A folder with all in it, too. True if there is none.
inline bool remove_file(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return !error;
}

}  // namespace metall::mtlldetail
