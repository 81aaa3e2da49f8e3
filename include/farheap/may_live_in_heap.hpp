// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether an object can outlive its process in a heap, as far as its type tells: construct() refuses what cannot.
// Containers, arrays, pairs, tuples, variants and optionals are looked through; members of other classes are not seen.
// Who knows better says so:
//
//   template <>
//   struct farheap::may_live_in_heap<Mine> : std::true_type {};   // or std::false_type
#pragma once

#include <farheap/type_name.hpp>
#include <memory>
#include <string_view>
#include <type_traits>

namespace farheap {

namespace detail {

// What a type keeps outside of the heap that holds it.
enum class Outside {
  kNothing,
  kDeclared,      // somebody has specialised may_live_in_heap
  kMemory,        // std::allocator's
  kOwned,         // objects that std::shared_ptr or std::unique_ptr would delete
  kCode,          // functions of the program
  kLock,          // of this process
  kSystem,        // what else the program or the system has
  kVirtualParts,  // tables of virtual functions, where nobody looks for them
};

// Of std::, whatever its inline namespaces: "mutex" of std::mutex, "function" of std::function<void()>; or nothing.
[[nodiscard]] constexpr std::string_view name_in_std(std::string_view type) {
  if (type.substr(0, 5) != "std::") return {};
  type.remove_prefix(5);
  type = type.substr(0, type.find('<'));
  while (type.substr(0, 2) == "__" && type.find("::") != type.npos) type.remove_prefix(type.find("::") + 2);
  return type;
}
template <class... Names>
[[nodiscard]] constexpr bool is_one_of(std::string_view name, Names... names) {
  return !name.empty() && ((name == names) || ...);
}

template <class T>
[[nodiscard]] constexpr Outside outside_of();

}  // namespace detail

template <class T>
struct may_live_in_heap : std::bool_constant<detail::outside_of<T>() == detail::Outside::kNothing> {};

namespace detail {

// Of a part of something else.
template <class T>
[[nodiscard]] constexpr Outside outside_of_part() {
  using Part = std::remove_cv_t<T>;
  if constexpr (may_live_in_heap<Part>::value) {
    return Outside::kNothing;
  } else {
    return outside_of<Part>() == Outside::kNothing ? Outside::kDeclared : outside_of<Part>();
  }
}
// Nobody puts its tables right there, registered or not.
template <class T>
[[nodiscard]] constexpr Outside outside_of_held_part() {
  if constexpr (std::is_polymorphic_v<std::remove_cv_t<T>>) {
    return Outside::kVirtualParts;
  } else {
    return outside_of_part<T>();
  }
}

// Of the first part that keeps something outside.
template <class... Parts>
[[nodiscard]] constexpr Outside outside_of_any() {
  Outside first = Outside::kNothing;
  ((first == Outside::kNothing ? void(first = outside_of_held_part<Parts>()) : void()), ...);
  return first;
}
template <class T>
struct Arguments {
  static constexpr Outside kOutside = Outside::kNothing;
};
template <template <class...> class Template, class... Parts>
struct Arguments<Template<Parts...>> {
  static constexpr Outside kOutside = outside_of_any<Parts...>();
};

template <class T>
[[nodiscard]] constexpr Outside outside_of_class() {
  constexpr std::string_view kName = name_in_std(printed_name<T>());
  if constexpr (is_one_of(kName, "function", "move_only_function", "any", "packaged_task")) {
    return Outside::kCode;
  } else if constexpr (is_one_of(kName, "shared_ptr", "weak_ptr", "exception_ptr")) {
    return Outside::kOwned;
  } else if constexpr (is_one_of(kName, "mutex", "timed_mutex", "recursive_mutex", "recursive_timed_mutex",
                                 "shared_mutex", "shared_timed_mutex", "condition_variable", "condition_variable_any",
                                 "counting_semaphore", "latch", "barrier", "once_flag", "unique_lock", "shared_lock",
                                 "scoped_lock", "lock_guard")) {
    return Outside::kLock;
  } else if constexpr (is_one_of(kName, "thread", "jthread", "future", "shared_future", "promise", "locale",
                                 "basic_regex", "filesystem::path", "filesystem::__cxx11::path", "stop_token",
                                 "stop_source", "type_index", "error_code", "error_condition", "coroutine_handle")) {
    return Outside::kSystem;
  } else if constexpr (is_one_of(kName, "valarray", "initializer_list")) {
    return Outside::kMemory;
  } else if constexpr (is_one_of(kName, "pair", "tuple", "variant", "optional", "atomic")) {
    return Arguments<T>::kOutside;
  } else if constexpr (requires {
                         typename T::deleter_type;
                         typename T::element_type;
                       }) {
    return is_one_of(name_in_std(printed_name<typename T::deleter_type>()), "default_delete") ? Outside::kOwned
                                                                                              : Outside::kNothing;
  } else if constexpr (requires {
                         typename T::container_type;
                         typename T::value_type;
                       }) {
    return outside_of_part<typename T::container_type>();  // std::stack, std::queue
  } else if constexpr (requires {
                         typename T::allocator_type;
                         typename T::value_type;
                       }) {
    using Allocator = typename T::allocator_type;
    if constexpr (is_one_of(name_in_std(printed_name<Allocator>()), "allocator") ||
                  printed_name<Allocator>().substr(0, 31) == "boost::container::new_allocator") {
      return Outside::kMemory;
    } else if constexpr (std::is_same_v<typename T::value_type, T>) {
      return Outside::kNothing;
    } else {
      return outside_of_held_part<typename T::value_type>();
    }
  } else if constexpr (is_one_of(kName, "array")) {
    return outside_of_held_part<typename T::value_type>();
  } else {
    return Outside::kNothing;
  }
}

// Data pointers may point into the heap.
template <class T>
constexpr Outside outside_of() {
  if constexpr (std::is_array_v<T>) {
    return outside_of_held_part<std::remove_all_extents_t<T>>();
  } else if constexpr (std::is_member_function_pointer_v<T> || std::is_function_v<std::remove_pointer_t<T>>) {
    return Outside::kCode;
  } else if constexpr (std::is_class_v<T>) {
    return outside_of_class<T>();
  } else {
    return Outside::kNothing;
  }
}

// Stands where an object of T is made in a heap.
template <class T>
struct LivesInHeap {
  static constexpr Outside kOutside = may_live_in_heap<T>::value             ? Outside::kNothing
                                      : outside_of<T>() == Outside::kNothing ? Outside::kDeclared
                                                                             : outside_of<T>();
  static_assert(kOutside != Outside::kDeclared,
                "this type cannot live in a heap: farheap::may_live_in_heap<T> was specialised to say so");
  static_assert(kOutside != Outside::kMemory,
                "std::allocator's memory is outside of the heap, and gone in the next run: take farheap::vector, "
                "farheap::string, farheap::map, ... (farheap/containers/std.hpp)");
  static_assert(kOutside != Outside::kOwned,
                "std::unique_ptr and std::shared_ptr own memory outside of the heap, and tables of this run: take a "
                "plain pointer to an object of the heap, or an index");
  static_assert(kOutside != Outside::kCode,
                "functions lie elsewhere in the next run: keep a number that stands for the function");
  static_assert(kOutside != Outside::kLock,
                "a lock in a heap comes back as it was at the commit, perhaps held by nobody: keep it outside, or take "
                "farheap::concurrent_map");
  static_assert(kOutside != Outside::kSystem,
                "this type of std:: keeps what is gone in the next run: keep its value, as text or a number");
  static_assert(kOutside != Outside::kVirtualParts,
                "the tables of virtual functions are put right of objects that construct() makes, not inside of "
                "containers: construct<Part>(farheap::anonymous_instance) each, and hold pointers to them");
};

}  // namespace detail

}  // namespace farheap
