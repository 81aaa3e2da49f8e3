// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Address ranges of this process: reserved at fixed places, given back, and arrays that grow in place.
//
// Thread-safety: plain values; the system calls behind them may be made from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <utility>

namespace farheap::os {

enum class Access { kNone, kReadWrite };

// Anonymous private memory that costs nothing until it is touched. Unmapped when it goes out of scope.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  // Anywhere, and not in core dumps: tables with much room, and buffers. Requires: bytes a multiple of the page size.
  [[nodiscard]] static Result<Mapping> reserve(std::size_t bytes, Access access, bool shared = false);
  // At exactly `address`; kConflict if something is mapped there, kNoSpace if overcommit or RLIMIT_AS forbids it.
  [[nodiscard]] static Result<Mapping> reserve_at(std::uintptr_t address, std::size_t bytes, Access access);

  [[nodiscard]] std::byte* data() const { return at_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  Mapping(std::byte* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
  std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

// Why addresses cannot be had, in words of what mends it. Allocates nothing.
[[nodiscard]] const char* remedy_for_addresses();

// A table with room for `capacity` elements at a fixed place; untouched elements are zero and take no memory.
// T must be meaningful when all its bytes are zero.
template <class T>
class ReservedArray {
 public:
  ReservedArray() = default;
  ReservedArray(ReservedArray&& other) noexcept
      : mapping_(std::move(other.mapping_)), capacity_(std::exchange(other.capacity_, 0)) {}
  ReservedArray& operator=(ReservedArray&& other) noexcept {
    std::swap(mapping_, other.mapping_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  [[nodiscard]] static Result<ReservedArray> make(std::size_t capacity, bool shared = false) {
    const std::size_t bytes = (capacity * sizeof(T) + 4095) / 4096 * 4096;
    auto mapping = Mapping::reserve(bytes, Access::kReadWrite, shared);
    if (!mapping) return fail(std::move(mapping.error()));
    ReservedArray array;
    array.mapping_ = std::move(*mapping);
    array.capacity_ = capacity;
    return array;
  }
  [[nodiscard]] T& operator[](std::size_t index) const { return reinterpret_cast<T*>(mapping_.data())[index]; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

 private:
  Mapping mapping_;
  std::size_t capacity_ = 0;
};

}  // namespace farheap::os
