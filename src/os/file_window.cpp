// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/file_window.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace farheap::os {

// The system calls: inside a program that runs on Farheap, mmap() and munmap() are Farheap's own.
FileWindow::~FileWindow() {
  for (const auto& piece : pieces_) {
    if (const std::byte* at = piece.load(std::memory_order_relaxed)) syscall(SYS_munmap, at, kPieceBytes);
  }
}

const std::byte* FileWindow::find(std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t number = offset / kPieceBytes;
  const std::uint64_t at = offset % kPieceBytes;
  if (number >= kPieces || at + bytes > kPieceBytes) return nullptr;
  const std::byte* piece = pieces_[number].load(std::memory_order_acquire);
  if (piece == nullptr) piece = map(number);
  return piece == nullptr ? nullptr : piece + at;
}

const std::byte* FileWindow::map(std::size_t number) {
  if (refused_.load(std::memory_order_relaxed)) return nullptr;
  const long at =
      syscall(SYS_mmap, nullptr, kPieceBytes, PROT_READ, MAP_SHARED, file_, static_cast<off_t>(number * kPieceBytes));
  if (at == -1) {
    refused_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  syscall(SYS_madvise, at, kPieceBytes, MADV_DONTDUMP);
  const std::byte* none = nullptr;
  const auto* const mine = reinterpret_cast<const std::byte*>(at);
  if (pieces_[number].compare_exchange_strong(none, mine, std::memory_order_acq_rel)) return mine;
  syscall(SYS_munmap, at, kPieceBytes);
  return none;
}

}  // namespace farheap::os
