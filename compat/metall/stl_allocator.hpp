// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// metall::manager::allocator_type. It knows its heap by an offset, so that what holds it works at any address; as
// Metall's, it does not move with a container's assignment or swap.
//
// Thread-safety: any thread. It must not allocate in a store that was opened for reading.
#pragma once

#include <cstddef>
#include <farheap/allocator.hpp>
#include <limits>
#include <metall/logger.hpp>
#include <metall/offset_ptr.hpp>
#include <new>
#include <type_traits>
#include <utility>

namespace metall {

template <class T, class Kernel>
class stl_allocator {
 public:
  using value_type = T;
  using pointer = offset_ptr<T>;
  using const_pointer = offset_ptr<const T>;
  using void_pointer = offset_ptr<void>;
  using const_void_pointer = offset_ptr<const void>;
  using difference_type = typename pointer::difference_type;
  using size_type = std::make_unsigned_t<difference_type>;
  using manager_kernel_type = Kernel;
  template <class U>
  struct rebind {
    using other = stl_allocator<U, Kernel>;
  };

  // Not explicit: nullptr is an allocator that has no heap, and allocates nothing.
  stl_allocator(farheap::HeapRoot* root) noexcept : root_(static_cast<void*>(root)) {}
  template <class U>
  stl_allocator(const stl_allocator<U, Kernel>& other) noexcept : root_(other.get_pointer_to_manager_kernel()) {}
  stl_allocator(const stl_allocator& other) noexcept = default;
  stl_allocator& operator=(const stl_allocator& other) noexcept = default;
  template <class U>
  stl_allocator& operator=(const stl_allocator<U, Kernel>& other) noexcept {
    root_ = other.get_pointer_to_manager_kernel();
    return *this;
  }

  // std::bad_alloc when the heap is full.
  pointer allocate(size_type count) const {
    if (count > max_size()) throw std::bad_array_new_length();
    void* const memory = has_root() ? farheap::detail::allocate(root(), count * sizeof(T), alignof(T)) : nullptr;
    if (memory == nullptr) throw std::bad_alloc();
    return pointer(static_cast<T*>(memory));
  }
  void deallocate(pointer object, size_type) const noexcept {
    if (has_root()) farheap::detail::deallocate(root(), to_raw_pointer(object));
  }
  size_type max_size() const noexcept { return std::numeric_limits<size_type>::max() / sizeof(T); }

  template <class... Arguments>
  void construct(const pointer& at, Arguments&&... arguments) const {
    ::new (static_cast<void*>(const_cast<std::remove_cv_t<T>*>(to_raw_pointer(at))))
        T(std::forward<Arguments>(arguments)...);
  }
  void destroy(const pointer& at) const { to_raw_pointer(at)->~T(); }

  // Metall's name for what an allocator belongs to: nullptr if it has no heap.
  farheap::HeapRoot* get_pointer_to_manager_kernel() const noexcept { return root(); }

 private:
  bool has_root() const noexcept {
    if (root_) return true;
    logger::out(logger::level::error, __FILE__, __LINE__, "this allocator belongs to no heap");
    return false;
  }
  farheap::HeapRoot* root() const noexcept { return static_cast<farheap::HeapRoot*>(root_.get()); }

  offset_ptr<void> root_;
};

template <class T, class U, class Kernel>
bool operator==(const stl_allocator<T, Kernel>& a, const stl_allocator<U, Kernel>& b) noexcept {
  return a.get_pointer_to_manager_kernel() == b.get_pointer_to_manager_kernel();
}
// Boost's containers ask for it by name.
template <class T, class U, class Kernel>
bool operator!=(const stl_allocator<T, Kernel>& a, const stl_allocator<U, Kernel>& b) noexcept {
  return !(a == b);
}

}  // namespace metall
