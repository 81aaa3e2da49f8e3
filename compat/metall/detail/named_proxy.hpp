// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What manager.construct<T>(name) returns: [count] and (arguments...) make the objects.
//
// Thread-safety: a temporary of one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <metall/kernel/manager_kernel.hpp>
#include <new>
#include <type_traits>
#include <utility>

namespace metall::mtlldetail {

template <class T, bool kIterate>
class named_proxy {
  static_assert(!std::is_polymorphic_v<T>,
                "an object with virtual functions cannot be kept with Metall's interface: its table lies elsewhere in "
                "the next run (farheap::Heap keeps registered types)");

 public:
  named_proxy(kernel::manager_kernel* kernel, kernel::object_name name, bool find)
      : kernel_(kernel), name_(name), find_(find) {}

  const named_proxy& operator[](std::size_t count) const {
    count_ *= count;
    return *this;
  }

  // nullptr when the name is taken (or, with find_or_construct: the one that is there), or there is no room.
  // What a constructor throws passes through, and nothing is left.
  template <class... Arguments>
  T* operator()(Arguments&&... arguments) const {
    if (kernel_ == nullptr) return nullptr;
    return kernel_->template construct<T>(name_, count_, find_, [&](T* first) {
      std::size_t made = 0;
      try {
        for (; made < count_; ++made) make(first + made, std::forward<Arguments>(arguments)...);
      } catch (...) {
        while (made > 0) std::destroy_at(first + --made);
        throw;
      }
    });
  }

 private:
  template <class... Arguments>
  void make(T* at, Arguments&&... arguments) const {
    if constexpr (kIterate) {
      ::new (static_cast<void*>(at)) T(*arguments...);
      (static_cast<void>(++arguments), ...);
    } else if constexpr (std::is_constructible_v<T, Arguments&...>) {
      // One of several must not move away what the others are made of.
      if (count_ == 1) {
        ::new (static_cast<void*>(at)) T(std::forward<Arguments>(arguments)...);
      } else {
        ::new (static_cast<void*>(at)) T(arguments...);
      }
    } else {
      ::new (static_cast<void*>(at)) T(std::forward<Arguments>(arguments)...);
    }
  }

  kernel::manager_kernel* kernel_;
  kernel::object_name name_;
  bool find_;
  mutable std::size_t count_ = 1;
};

}  // namespace metall::mtlldetail
