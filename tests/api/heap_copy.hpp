// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes of a heap at another address, to see what still works there.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <farheap/heap.hpp>

namespace farheap::testing {

// What a heap has handed out around an object, at another address.
class Copy {
 public:
  Copy(Heap& heap, const void* object) : from_(page_of(object) - kAround) {
    bytes_ = heap.statistics().segment_bytes + 2 * kAround;
    to_ = static_cast<std::byte*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (to_ == MAP_FAILED || !heap.owns(from_) || !heap.owns(from_ + bytes_)) abort();
    std::memcpy(to_, from_, bytes_);
  }
  ~Copy() { munmap(to_, bytes_); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  template <class T>
  [[nodiscard]] T& at_its_place(T* original) const {
    return *reinterpret_cast<T*>(to_ + (reinterpret_cast<const std::byte*>(original) - from_));
  }

 private:
  static constexpr std::size_t kAround = 4_MiB;
  static const std::byte* page_of(const void* object) {
    return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(object) & ~std::uintptr_t{4095});
  }
  const std::byte* from_;
  std::byte* to_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace farheap::testing
