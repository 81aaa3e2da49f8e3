// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a pointer becomes when the range it points into lies elsewhere: books of a heap that was opened at other
// addresses than it was written at.
//
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace farheap::base {

struct AddressShift {
  std::uintptr_t from = 0;  // where the range lay
  std::uintptr_t to = 0;    // where it lies
  std::size_t bytes = 0;

  [[nodiscard]] bool is_needed() const noexcept { return from != to; }

  // A pointer that does not point into the range (or to its end) stays as it is.
  void operator()(std::uintptr_t& address) const noexcept {
    if (address - from <= bytes) address += to - from;
  }
  template <class T>
  void operator()(T*& pointer) const noexcept {
    auto address = reinterpret_cast<std::uintptr_t>(pointer);
    (*this)(address);
    pointer = reinterpret_cast<T*>(address);
  }
};

}  // namespace farheap::base
