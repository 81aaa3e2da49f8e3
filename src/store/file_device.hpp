// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One file as a device for blocks: direct where the file system allows it, with bounce buffers for callers whose
// memory is not aligned.
//
// Thread-safety: any thread, and a forked child too: only positioned I/O.
#pragma once

#include <atomic>
#include <farheap/result.hpp>
#include <farheap/store.hpp>
#include <memory>
#include <span>
#include <string>

#include "os/file_window.hpp"
#include "os/read_ring.hpp"

namespace farheap::store {

class FileDevice {
 public:
  // Takes the open file over, and `reader`, the same file opened for reading only (-1: there is none).
  [[nodiscard]] static std::unique_ptr<FileDevice> take(int file, std::string name, const StoreOptions& options,
                                                        int reader = -1);
  ~FileDevice();
  FileDevice(const FileDevice&) = delete;
  FileDevice& operator=(const FileDevice&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] bool is_direct() const { return direct_; }
  // From here on this process can only read it, whatever becomes of it. False without a `reader`: it cannot even that.
  [[nodiscard]] bool has_reader() const { return reader_ >= 0; }
  void leave_only_reader();
  [[nodiscard]] bool gives_back() const { return gives_back_; }
  [[nodiscard]] std::size_t block_bytes() const { return block_bytes_; }
  // Blocks are smaller than what holes are made of; then erase() needs to know its neighbours.
  [[nodiscard]] bool has_small_blocks() const { return block_bytes_ < kHoleBytes; }

  // Requests for this file; `file` is filled in.
  void run(std::span<os::IoRequest> batch);
  // Where blocks lie that are in the file, if that is in memory; nullptr otherwise.
  [[nodiscard]] const std::byte* find_in_memory(std::uint64_t first, std::size_t count) {
    return window_ ? window_->find(first * block_bytes_, count * block_bytes_) : nullptr;
  }
  // nullptr without io_uring.
  [[nodiscard]] std::unique_ptr<os::ReadRing> read_ring(unsigned most) const;
  // Whether direct I/O can go to where `io` points, without a detour.
  [[nodiscard]] bool fits(const os::IoRequest& io) const {
    return !direct_ || reinterpret_cast<std::uintptr_t>(io.data) % memory_alignment_ == 0;
  }
  [[nodiscard]] bool reaches(std::uint64_t end_bytes) const {
    return end_bytes <= size_.load(std::memory_order_relaxed);
  }
  // Makes the file reach `end_bytes`, and well beyond: writes inside a file are faster than those that extend it.
  // Without room it does nothing: the write will tell. Requires: no other process or thread does the same.
  void reach(std::uint64_t end_bytes);
  // Takes room for blocks that are about to be written for the first time, if `together` requests are. A ring writes
  // into room that was taken from 2 to 6 times faster than into a hole (4 KiB: 110 instead of 17 MB/s on ext4), where
  // it hands each write to a thread; for a lone plain write it does not pay. Without room the write will tell.
  void prepare(std::uint64_t first, std::uint64_t count, std::size_t together);
  // Gives blocks [first, last) back. Where blocks are small, holes are widened over neighbours that
  // `is_absent(block)`, and narrowed where they are present.
  template <class IsAbsent>
  [[nodiscard]] Status punch(std::uint64_t first, std::uint64_t last, IsAbsent is_absent);
  [[nodiscard]] Status sync();
  [[nodiscard]] Result<std::uint64_t> space_bytes() const;

 private:
  static constexpr std::size_t kHoleBytes = 4096;

  FileDevice(int file, int reader, std::string name, const StoreOptions& options);
  void choose_direct();
  void run_within_limits(std::span<os::IoRequest> batch);
  void run_bounced(std::span<os::IoRequest> batch, std::size_t bytes);
  [[nodiscard]] os::IoWay way() const { return use_ring_ ? os::IoWay::kRing : os::IoWay::kPlain; }
  [[nodiscard]] Status punch_bytes(std::uint64_t begin, std::uint64_t end);

  int file_;
  int reader_;
  std::string name_;
  std::size_t block_bytes_;
  std::size_t memory_alignment_ = 4096;
  bool direct_ = false;
  bool use_ring_ = false;
  bool gives_back_ = true;
  std::atomic<std::uint64_t> size_{0};
  std::unique_ptr<os::FileWindow> window_;
};

template <class IsAbsent>
Status FileDevice::punch(std::uint64_t first, std::uint64_t last, IsAbsent is_absent) {
  if (has_small_blocks()) {
    const std::uint64_t per_hole = kHoleBytes / block_bytes_;
    std::uint64_t low = first / per_hole * per_hole;
    for (std::uint64_t block = low; block < first; ++block) {
      if (!is_absent(block)) low = (first + per_hole - 1) / per_hole * per_hole;
    }
    std::uint64_t high = (last + per_hole - 1) / per_hole * per_hole;
    for (std::uint64_t block = last; block < high; ++block) {
      if (!is_absent(block)) high = last / per_hole * per_hole;
    }
    first = low, last = high;
  }
  return first < last ? punch_bytes(first * block_bytes_, last * block_bytes_) : Status{};
}

}  // namespace farheap::store
