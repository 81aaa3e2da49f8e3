// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One container type in a heap and outside of any: made from a heap or from its allocator it takes memory there, made
// from nothing it takes it from operator new.
//
//   using Numbers = std::vector<int, farheap::fallback_allocator<int>>;
//   Numbers outside;                                                     // as any std::vector
//   auto* inside = heap.construct<Numbers>("numbers")(heap.allocator<int>());
//   *inside = outside;                                                   // copied: it stays in the heap
//   *inside = std::move(outside);                                        // copied, too, because the memory differs
//
// A container keeps its allocator for ever, whatever is assigned to it: so nothing in a heap comes to hold memory from
// outside. swap() of one inside with one outside is undefined, as for all containers with unequal allocators.
// In a heap always give the allocator: what is default-constructed there is gone in the next run.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <farheap/allocator.hpp>
#include <farheap/heap.hpp>
#include <memory>
#include <new>
#include <type_traits>

namespace farheap {

// Requires: Base is made from a HeapRoot*, nullptr too, and gives it back by root().
template <class Base>
class basic_fallback_allocator {
  using Traits = std::allocator_traits<Base>;

 public:
  using value_type = typename Traits::value_type;
  using pointer = typename Traits::pointer;
  using const_pointer = typename Traits::const_pointer;
  using void_pointer = typename Traits::void_pointer;
  using const_void_pointer = typename Traits::const_void_pointer;
  using difference_type = typename Traits::difference_type;
  using size_type = typename Traits::size_type;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::false_type;
  using propagate_on_container_swap = std::false_type;
  using is_always_equal = std::false_type;
  template <class U>
  struct rebind {
    using other = basic_fallback_allocator<typename Traits::template rebind_alloc<U>>;
  };

  basic_fallback_allocator() noexcept : base_(static_cast<HeapRoot*>(nullptr)) {}
  explicit basic_fallback_allocator(const Heap& heap) noexcept : base_(heap.template allocator<value_type>().root()) {}
  template <class Other>
    requires std::is_convertible_v<const Other&, Base>
  basic_fallback_allocator(const Other& heap_allocator) noexcept : base_(heap_allocator) {}
  template <class Other>
  basic_fallback_allocator(const basic_fallback_allocator<Other>& other) noexcept : base_(other.base()) {}

  [[nodiscard]] pointer allocate(size_type count) {
    if (in_heap()) return Traits::allocate(base_, count);
    return pointer(std::allocator<value_type>().allocate(count));
  }
  void deallocate(const pointer& memory, size_type count) noexcept {
    if (in_heap()) return Traits::deallocate(base_, memory, count);
    std::allocator<value_type>().deallocate(std::to_address(memory), count);
  }

  [[nodiscard]] bool in_heap() const noexcept { return root() != nullptr; }
  [[nodiscard]] HeapRoot* root() const noexcept { return base_.root(); }
  [[nodiscard]] const Base& base() const noexcept { return base_; }
  template <class Other>
  [[nodiscard]] bool operator==(const basic_fallback_allocator<Other>& other) const noexcept {
    return root() == other.root();
  }

 private:
  Base base_;
};

template <class T>
using fallback_allocator = basic_fallback_allocator<allocator<T>>;

}  // namespace farheap
