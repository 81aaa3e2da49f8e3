// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocator for what has to work wherever its heap is mapped: its pointers are distances
// (boost::interprocess::offset_ptr). Only containers that keep nothing but the allocator's own pointers can use it;
// farheap/containers/offset.hpp names them, and docs/containers.md says which of std:: do not.
//
//   farheap::offset::vector<int> numbers(farheap::offset_allocator<int>(heap));
//
// Thread-safety: any thread.
#pragma once

#include <boost/interprocess/offset_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <farheap/allocator.hpp>
#include <farheap/heap.hpp>
#include <new>
#include <type_traits>

namespace farheap {

template <class T>
class offset_allocator {
 public:
  using value_type = T;
  using pointer = boost::interprocess::offset_ptr<T>;
  using const_pointer = boost::interprocess::offset_ptr<const T>;
  using void_pointer = boost::interprocess::offset_ptr<void>;
  using const_void_pointer = boost::interprocess::offset_ptr<const void>;
  using difference_type = std::ptrdiff_t;
  using size_type = std::size_t;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::false_type;
  using propagate_on_container_swap = std::false_type;
  using is_always_equal = std::false_type;
  template <class U>
  struct rebind {
    using other = offset_allocator<U>;
  };

  // There is none: it is only declared so that the compiler says so in one line.
  template <class U = T>
  offset_allocator() noexcept {
    static_assert(
        detail::kNever<U>,
        "what lives in a heap is made with the heap's allocator: farheap::offset_allocator<std::byte>(heap), or "
        "inside of a container emplace_back(\"text\"), emplace(\"text\", value), which hand theirs on "
        "(docs/containers.md)");
  }
  explicit offset_allocator(HeapRoot* root) noexcept : root_(root) {}
  explicit offset_allocator(const Heap& heap) noexcept : root_(heap.allocator<T>().root()) {}
  template <class U>
  offset_allocator(const allocator<U>& other) noexcept : root_(other.root()) {}
  template <class U>
  offset_allocator(const offset_allocator<U>& other) noexcept : root_(other.root()) {}

  [[nodiscard]] pointer allocate(std::size_t count) { return pointer(allocator<T>(root()).allocate(count)); }
  void deallocate(const pointer& memory, std::size_t count) noexcept {
    allocator<T>(root()).deallocate(memory.get(), count);
  }

  [[nodiscard]] HeapRoot* root() const noexcept { return root_.get(); }
  template <class U>
  [[nodiscard]] bool operator==(const offset_allocator<U>& other) const noexcept {
    return root() == other.root();
  }

 private:
  boost::interprocess::offset_ptr<HeapRoot> root_;
};

}  // namespace farheap
