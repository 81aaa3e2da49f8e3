// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that is in memory anyway (tmpfs), readable where it lies: mapped in pieces, each when it is first asked for.
// Not in core dumps.
//
// Thread-safety: any thread; a forked child has it, too.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace farheap::os {

class FileWindow {
 public:
  // The file outlives the window.
  explicit FileWindow(int file) : file_(file) {}
  ~FileWindow();
  FileWindow(const FileWindow&) = delete;
  FileWindow& operator=(const FileWindow&) = delete;

  // nullptr if that is not in one piece, or there are no addresses for it. To touch what the file does not reach raises
  // SIGBUS; to touch a hole fills it.
  [[nodiscard]] const std::byte* find(std::uint64_t offset, std::size_t bytes);

  static constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 30;

 private:
  static constexpr std::size_t kPieces = 4096;
  [[nodiscard]] const std::byte* map(std::size_t number);

  const int file_;
  std::atomic<bool> refused_{false};  // no addresses were left: they are not asked for again
  std::array<std::atomic<const std::byte*>, kPieces> pieces_{};
};

}  // namespace farheap::os
