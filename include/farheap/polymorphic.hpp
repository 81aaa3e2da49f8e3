// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects with virtual functions in a kept heap. Such an object points to tables of the program, which lie elsewhere in
// every run; so the type is registered, once, in the program that opens the heap:
//
//   struct Circle : Shape { ... };
//   FARHEAP_POLYMORPHIC(Circle)             // outside of all namespaces
//   ...
//   heap.construct<Circle>("circle")(2.5);
//
// When a heap is opened, the pointers to tables of all objects that construct() has made are put right; a heap with
// objects of types that this program has not registered is refused (HeapOptions::any_types opens it all the same).
// This reaches what construct() has made, by name, as unique or as anonymous instance. It does not reach what such
// objects or containers allocate by themselves: make polymorphic parts with construct<Part>(anonymous_instance).
//
// The tables are found in the program's read-only data by the type_info they begin with (Itanium C++ ABI, 2.5.2).
// Types with virtual bases may have several that look alike: they are refused with a message.
#pragma once

#include <cstddef>
#include <type_traits>
#include <typeinfo>

namespace farheap {

template <class T>
struct polymorphic : std::false_type {};

namespace detail {
// Thread-safety: any thread. Always true.
bool register_polymorphic(const std::type_info& type, std::size_t bytes);
}  // namespace detail

}  // namespace farheap

#if defined(__cpp_rtti)
#define FARHEAP_POLYMORPHIC(...)                                                                    \
  template <>                                                                                       \
  struct farheap::polymorphic<__VA_ARGS__> : std::true_type {                                       \
    static_assert(std::is_polymorphic_v<__VA_ARGS__>, "this type has no virtual functions");        \
    static_assert(!std::is_abstract_v<__VA_ARGS__>, "register the types that objects are made of"); \
    inline static const bool registered =                                                           \
        farheap::detail::register_polymorphic(typeid(__VA_ARGS__), sizeof(__VA_ARGS__));            \
  };
#else
// Tables are found by the type_info that they begin with.
#define FARHEAP_POLYMORPHIC(...)                                                                  \
  template <>                                                                                     \
  struct farheap::polymorphic<__VA_ARGS__> : std::true_type {                                     \
    static_assert(!std::is_same_v<__VA_ARGS__, __VA_ARGS__>, "FARHEAP_POLYMORPHIC needs -frtti"); \
  };
#endif
