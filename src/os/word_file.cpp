// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/word_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/units.hpp"
#include "os/own_descriptors.hpp"

namespace farheap::os {

namespace {
constexpr std::size_t kPieceBytes = base::kMiB;
constexpr std::size_t kPieceWords = kPieceBytes / sizeof(std::uint32_t);
constexpr char kWhat[] = "cannot write";
}  // namespace

Result<WordFile> WordFile::create(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) {
    const char* const remedy = errno == EEXIST ? "remove it, or choose another name" : "choose a folder you may write";
    return fail(errno_error(errno, kWhat, path, remedy));
  }
  return WordFile(keep_descriptor(file), path);
}

WordFile::WordFile(WordFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      words_(std::exchange(other.words_, nullptr)),
      used_(std::exchange(other.used_, 0)),
      before_(std::exchange(other.before_, 0)) {}

WordFile::~WordFile() {
  if (words_ != nullptr) syscall(SYS_munmap, words_, kPieceBytes);
  release_descriptor(file_);
}

// The system calls: inside a program that runs on Farheap, mmap() is Farheap's own.
Status WordFile::next_piece() {
  const std::uint64_t words = size_words();
  const auto offset = static_cast<off_t>(words * sizeof(std::uint32_t));
  const int error = posix_fallocate(file_, offset, static_cast<off_t>(kPieceBytes));
  if (error != 0) return fail(errno_error(error, kWhat, path_));
  const long at = syscall(SYS_mmap, nullptr, kPieceBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, offset);
  if (at == -1) return fail(errno_error(errno, kWhat, path_));
  if (words_ != nullptr) syscall(SYS_munmap, words_, kPieceBytes);
  words_ = reinterpret_cast<std::uint32_t*>(at);
  before_ = words;
  used_ = 0;
  return {};
}

Status WordFile::append(std::span<const std::uint32_t> words) {
  while (!words.empty()) {
    if (words_ == nullptr || used_ == kPieceWords) {
      if (Status grown = next_piece(); !grown) return grown;
    }
    const std::size_t count = std::min(words.size(), kPieceWords - used_);
    std::memcpy(words_ + used_, words.data(), count * sizeof(std::uint32_t));
    used_ += count;
    words = words.subspan(count);
  }
  return {};
}

}  // namespace farheap::os
