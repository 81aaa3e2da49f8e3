// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An allocator that takes from malloc() when it was given no heap: for containers that live in a store here and in
// plain memory there.
//
// Thread-safety: as the allocator's in it.
#pragma once

#include <cstdlib>
#include <memory>
#include <metall/offset_ptr.hpp>
#include <new>
#include <type_traits>
#include <utility>

namespace metall::container {

template <class StatefulAllocator>
class fallback_allocator_adaptor {
  static_assert(!std::is_default_constructible_v<StatefulAllocator>,
                "an allocator that needs no heap needs no other way, too");

 public:
  using stateful_allocator_type = StatefulAllocator;
  using value_type = typename StatefulAllocator::value_type;
  using pointer = typename StatefulAllocator::pointer;
  using const_pointer = typename StatefulAllocator::const_pointer;
  using void_pointer = typename StatefulAllocator::void_pointer;
  using const_void_pointer = typename StatefulAllocator::const_void_pointer;
  using difference_type = typename StatefulAllocator::difference_type;
  using size_type = typename StatefulAllocator::size_type;
  template <class U>
  struct rebind {
    using other =
        fallback_allocator_adaptor<typename std::allocator_traits<StatefulAllocator>::template rebind_alloc<U>>;
  };

  fallback_allocator_adaptor() noexcept : allocator_(nullptr) {}
  fallback_allocator_adaptor(const fallback_allocator_adaptor& other) noexcept = default;
  fallback_allocator_adaptor& operator=(const fallback_allocator_adaptor& other) noexcept = default;
  template <class Other>
    requires std::is_constructible_v<StatefulAllocator, const Other&>
  fallback_allocator_adaptor(const fallback_allocator_adaptor<Other>& other) noexcept
      : allocator_(other.get_stateful_allocator()) {}
  template <class Other>
    requires std::is_constructible_v<StatefulAllocator, const Other&>
  fallback_allocator_adaptor(const Other& allocator) noexcept : allocator_(allocator) {}

  pointer allocate(size_type count) const {
    if (stateful_allocator_available()) return allocator_.allocate(count);
    if (count > max_size()) throw std::bad_array_new_length();
    void* const memory = std::malloc(count * sizeof(value_type));
    if (memory == nullptr) throw std::bad_alloc();
    return pointer(static_cast<value_type*>(memory));
  }
  void deallocate(pointer object, size_type count) const noexcept {
    if (stateful_allocator_available()) {
      allocator_.deallocate(object, count);
    } else {
      std::free(static_cast<void*>(to_raw_pointer(object)));
    }
  }
  size_type max_size() const noexcept { return allocator_.max_size(); }
  template <class... Arguments>
  void construct(const pointer& at, Arguments&&... arguments) const {
    allocator_.construct(at, std::forward<Arguments>(arguments)...);
  }
  void destroy(const pointer& at) const { allocator_.destroy(at); }

  stateful_allocator_type& get_stateful_allocator() noexcept { return allocator_; }
  const stateful_allocator_type& get_stateful_allocator() const noexcept { return allocator_; }
  bool stateful_allocator_available() const noexcept { return allocator_.get_pointer_to_manager_kernel() != nullptr; }

 private:
  StatefulAllocator allocator_;
};

template <class A, class B>
bool operator==(const fallback_allocator_adaptor<A>& a, const fallback_allocator_adaptor<B>& b) noexcept {
  return a.get_stateful_allocator() == b.get_stateful_allocator();
}
template <class A, class B>
bool operator!=(const fallback_allocator_adaptor<A>& a, const fallback_allocator_adaptor<B>& b) noexcept {
  return !(a == b);
}

}  // namespace metall::container
