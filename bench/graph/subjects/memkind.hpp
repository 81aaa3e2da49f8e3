// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// memkind's PMEM kind: jemalloc over a file that is gone with the process.
#pragma once

#include <memkind.h>

#include <cstddef>
#include <new>

#include "stop.hpp"

namespace farheap::bench {

inline memkind_t g_kind = nullptr;

template <class T>
struct MemkindAllocator {
  using value_type = T;
  MemkindAllocator() = default;
  template <class U>
  MemkindAllocator(const MemkindAllocator<U>&) noexcept {}
  T* allocate(std::size_t count) {
    void* const memory = memkind_malloc(g_kind, count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* pointer, std::size_t) noexcept { memkind_free(g_kind, pointer); }
  template <class U>
  bool operator==(const MemkindAllocator<U>&) const noexcept {
    return true;
  }
};

class Subject {
 public:
  using Allocator = MemkindAllocator<std::byte>;
  static constexpr bool kKeeps = false;
  Subject(const char* folder, std::size_t) {
    if (memkind_create_pmem(folder, 0, &g_kind) != MEMKIND_SUCCESS) stop("memkind cannot make a kind");
  }
  template <class T>
  T* construct() {
    return new (Allocator().allocate(sizeof(T))) T(Allocator());
  }
  void finish() {}
  void report() {}
};

}  // namespace farheap::bench
