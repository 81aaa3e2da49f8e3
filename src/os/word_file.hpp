// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of 32-bit words that only grows. It is written through shared memory: whatever ends the process, the words
// that were appended are in the file, followed by zeros up to the end of the last piece. Room on the disk is taken
// before it is written to, so that a full disk is an error here and not a SIGBUS.
//
// Thread-safety: none of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <span>
#include <string>
#include <utility>

namespace farheap::os {

class WordFile {
 public:
  // A new file with mode 0600; kInvalidArgument or kIo when something of that name is there or it cannot be made.
  [[nodiscard]] static Result<WordFile> create(const std::string& path);
  WordFile(WordFile&& other) noexcept;
  WordFile& operator=(WordFile&&) = delete;
  ~WordFile();

  // Requires, for all words but those of a file's header: not 0, which is how a reader knows the end.
  [[nodiscard]] Status append(std::span<const std::uint32_t> words);
  [[nodiscard]] Status append(std::uint32_t word) { return append({&word, 1}); }
  // Requires: something was appended since the file was made.
  void replace_last(std::uint32_t word) { words_[used_ - 1] = word; }
  [[nodiscard]] std::uint64_t size_words() const { return before_ + used_; }

 private:
  WordFile(int file, std::string path) : file_(file), path_(std::move(path)) {}
  [[nodiscard]] Status next_piece();

  int file_ = -1;
  std::string path_;
  std::uint32_t* words_ = nullptr;  // the last piece of the file
  std::size_t used_ = 0;
  std::uint64_t before_ = 0;  // words in the pieces before
};

}  // namespace farheap::os
