// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocator of a kept heap, for std:: containers and whatever else takes one. It lives in the heap with what uses
// it, and is valid in the next run.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <type_traits>

namespace farheap {

// The heap's own first object, in the heap: at the same address in every run.
struct HeapRoot;

namespace detail {
// nullptr when there is no room.
[[nodiscard]] void* allocate(HeapRoot* root, std::size_t bytes, std::size_t alignment) noexcept;
// HeapFull, ReadOnlyHeap, std::bad_array_new_length. The library throws, so that programs without exceptions compile.
[[nodiscard]] void* allocate_array(HeapRoot* root, std::size_t count, std::size_t element_bytes, std::size_t alignment);
void deallocate(HeapRoot* root, void* pointer) noexcept;
// As Heap::pause(), for what lives in the heap and knows its root only.
void hold_commit(HeapRoot* root);
void let_commit(HeapRoot* root) noexcept;
template <class>
inline constexpr bool kNever = false;
}  // namespace detail

template <class T>
class allocator {
 public:
  using value_type = T;
  // A container keeps its allocator whatever is assigned to it: nothing in a heap comes to point into another one.
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::false_type;
  using propagate_on_container_swap = std::false_type;
  using is_always_equal = std::false_type;

  // There is none: it is only declared so that the compiler says so in one line.
  template <class U = T>
  allocator() noexcept {
    static_assert(detail::kNever<U>,
                  "what lives in a heap is made with the heap's allocator: farheap::string(\"text\", "
                  "heap.allocator<char>()), or inside of a container emplace_back(\"text\"), emplace(\"text\", value), "
                  "which hand theirs on (docs/containers.md)");
  }
  explicit allocator(HeapRoot* root) noexcept : root_(root) {}
  template <class U>
  allocator(const allocator<U>& other) noexcept : root_(other.root()) {}

  // HeapFull, ReadOnlyHeap (farheap/heap.hpp).
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(detail::allocate_array(root_, count, sizeof(T), alignof(T)));
  }
  void deallocate(T* pointer, std::size_t) noexcept { detail::deallocate(root_, static_cast<void*>(pointer)); }

  [[nodiscard]] HeapRoot* root() const noexcept { return root_; }
  template <class U>
  [[nodiscard]] bool operator==(const allocator<U>& other) const noexcept {
    return root_ == other.root();
  }

 private:
  HeapRoot* root_;
};

}  // namespace farheap
