// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The malloc of the process: glibc's, or what is preloaded.
#pragma once

#include <cstddef>
#include <memory>

#include "stop.hpp"

namespace farheap::bench {

class Subject {
 public:
  using Allocator = std::allocator<std::byte>;
  static constexpr bool kKeeps = false;
  Subject(const char*, std::size_t) {}
  template <class T>
  T* construct() {
    return new T(Allocator());
  }
  void finish() {}
  void report() {}
};

}  // namespace farheap::bench
