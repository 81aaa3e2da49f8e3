// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses without memory: what an allocator hands out of them is in a store. Its books are not.
//
// Thread-safety: any thread.
#pragma once

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "os/mapping.hpp"
#include "segment/page_space.hpp"
#include "segment/run_allocator.hpp"
#include "share/far_memory.hpp"

namespace farheap::share {

class FarSpace final : public segment::PageSpace {
 public:
  // The memory outlives it.
  FarSpace(os::Mapping range, FarMemory& memory)
      : range_(std::move(range)), memory_(memory), runs_(range_.data(), range_.size()) {}
  [[nodiscard]] std::byte* base() const override { return range_.data(); }
  [[nodiscard]] std::size_t capacity_bytes() const override { return range_.size(); }
  [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) override {
    base::LockGuard lock(mutex_);
    return runs_.obtain(bytes, alignment);
  }
  void give_back(std::byte* at, std::size_t bytes) override {
    discard(at, bytes);
    base::LockGuard lock(mutex_);
    runs_.give_back(at, bytes);
  }
  // What could not be erased takes space in the store until it is written over. Nobody relies on it to read as zeros:
  // who wants zeros writes them.
  void discard(std::byte* at, std::size_t bytes) override {
    const auto first = static_cast<std::uint64_t>(at - range_.data()) / base::kPageBytes;
    const Status erased = memory_.forget(first, bytes / base::kPageBytes);
    if (!erased) base::log(base::LogLevel::kWarn, "{}", erased.error().message());
  }
  [[nodiscard]] bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) override {
    base::LockGuard lock(mutex_);
    return runs_.extend(at, bytes, new_bytes);
  }

 private:
  os::Mapping range_;
  FarMemory& memory_;
  base::Mutex mutex_;
  segment::RunAllocator runs_ FARHEAP_GUARDED_BY(mutex_);
};

}  // namespace farheap::share
