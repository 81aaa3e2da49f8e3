// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file of fixed size whose bytes are memory: what is written there is in the file, whatever ends the process. Its
// room on the disk is taken when it is made, so that a full disk is an error then and not a SIGBUS later.
//
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <farheap/result.hpp>
#include <string>
#include <utility>

namespace farheap::os {

class SharedFile {
 public:
  SharedFile() = default;
  // A new file of zeros, mode 0600; kIo or kNoSpace if it cannot be made, or something of that name is there. No
  // descriptor stays. Requires: bytes > 0.
  [[nodiscard]] static Result<SharedFile> create(const std::string& path, std::size_t bytes);
  SharedFile(SharedFile&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedFile& operator=(SharedFile&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedFile();

  // The bytes are where `place` had its own, and who writes there meanwhile writes into either. `place` is left without
  // a file. Requires: they have one size. kIo: nothing has changed.
  [[nodiscard]] Status move_over(SharedFile& place);
  // The file is unmapped. Zeros of this process take its place, and later writes go there.
  void leave_file();

  [[nodiscard]] std::byte* data() const { return at_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  SharedFile(std::byte* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace farheap::os
