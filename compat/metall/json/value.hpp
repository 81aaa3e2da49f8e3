// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A JSON value that lives where its allocator takes memory: in a datastore, at any address.
//
// Thread-safety: one thread changes, or many read.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <metall/json/array.hpp>
#include <metall/json/json_fwd.hpp>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace metall::json {

template <class Allocator>
class value {
 public:
  using allocator_type = Allocator;
  using string_type = basic_string<char, std::char_traits<char>,
                                   typename std::allocator_traits<Allocator>::template rebind_alloc<char>>;
  using object_type = object<Allocator>;
  using array_type = array<Allocator>;

  value() : value(Allocator()) {}
  explicit value(const Allocator& allocator) : allocator_(allocator) {}
  value(const value& other)
      : value(other, std::allocator_traits<Allocator>::select_on_container_copy_construction(other.allocator_)) {}
  value(const value& other, const Allocator& allocator) : allocator_(allocator) { take(other); }
  value(value&& other) noexcept : allocator_(other.allocator_), data_(std::move(other.data_)) { other.emplace_null(); }
  value(value&& other, const Allocator& allocator) : allocator_(allocator) {
    take(std::move(other));
    other.emplace_null();
  }
  ~value() noexcept = default;

  // It keeps its allocator.
  value& operator=(const value& other) {
    if (this != &other) take(other);
    return *this;
  }
  value& operator=(value&& other) {
    if (this == &other) return *this;
    take(std::move(other));
    other.emplace_null();
    return *this;
  }
  // Requires: the allocators are equal.
  void swap(value& other) noexcept { data_.swap(other.data_); }
  friend void swap(value& a, value& b) noexcept { a.swap(b); }

  value& operator=(std::nullptr_t) {
    emplace_null();
    return *this;
  }
  value& operator=(bool flag) {
    emplace_bool() = flag;
    return *this;
  }
  template <std::signed_integral Number>
    requires(!std::same_as<Number, bool>)
  value& operator=(Number number) {
    emplace_int64() = number;
    return *this;
  }
  template <std::unsigned_integral Number>
    requires(!std::same_as<Number, bool>)
  value& operator=(Number number) {
    emplace_uint64() = number;
    return *this;
  }
  value& operator=(double number) {
    emplace_double() = number;
    return *this;
  }
  value& operator=(std::string_view text) {
    emplace_string().assign(text.data(), text.size());
    return *this;
  }
  value& operator=(const char* text) { return *this = std::string_view(text); }
  value& operator=(const string_type& text) { return assign(emplace_string(), text); }
  value& operator=(string_type&& text) { return assign(emplace_string(), std::move(text)); }
  value& operator=(const array_type& elements) { return assign(emplace_array(), elements); }
  value& operator=(array_type&& elements) { return assign(emplace_array(), std::move(elements)); }
  value& operator=(const object_type& members) { return assign(emplace_object(), members); }
  value& operator=(object_type&& members) { return assign(emplace_object(), std::move(members)); }

  void emplace_null() noexcept { data_.template emplace<null_type>(); }
  bool& emplace_bool() noexcept { return data_.template emplace<bool>(); }
  std::int64_t& emplace_int64() noexcept { return data_.template emplace<std::int64_t>(); }
  std::uint64_t& emplace_uint64() noexcept { return data_.template emplace<std::uint64_t>(); }
  double& emplace_double() noexcept { return data_.template emplace<double>(); }
  string_type& emplace_string() { return data_.template emplace<string_type>(allocator_); }
  array_type& emplace_array() { return data_.template emplace<array_type>(allocator_); }
  object_type& emplace_object() { return data_.template emplace<object_type>(allocator_); }

  // std::bad_variant_access if it is another.
  bool& as_bool() { return std::get<bool>(data_); }
  const bool& as_bool() const { return std::get<bool>(data_); }
  std::int64_t& as_int64() { return std::get<std::int64_t>(data_); }
  const std::int64_t& as_int64() const { return std::get<std::int64_t>(data_); }
  std::uint64_t& as_uint64() { return std::get<std::uint64_t>(data_); }
  const std::uint64_t& as_uint64() const { return std::get<std::uint64_t>(data_); }
  double& as_double() { return std::get<double>(data_); }
  const double& as_double() const { return std::get<double>(data_); }
  string_type& as_string() { return std::get<string_type>(data_); }
  const string_type& as_string() const { return std::get<string_type>(data_); }
  array_type& as_array() { return std::get<array_type>(data_); }
  const array_type& as_array() const { return std::get<array_type>(data_); }
  object_type& as_object() { return std::get<object_type>(data_); }
  const object_type& as_object() const { return std::get<object_type>(data_); }

  bool is_null() const noexcept { return is<null_type>(); }
  bool is_bool() const noexcept { return is<bool>(); }
  bool is_int64() const noexcept { return is<std::int64_t>(); }
  bool is_uint64() const noexcept { return is<std::uint64_t>(); }
  bool is_double() const noexcept { return is<double>(); }
  bool is_string() const noexcept { return is<string_type>(); }
  bool is_array() const noexcept { return is<array_type>(); }
  bool is_object() const noexcept { return is<object_type>(); }
  allocator_type get_allocator() const noexcept { return allocator_; }

  // Integers are equal whatever their signs' types; no number is equal to one of floating point.
  friend bool operator==(const value& a, const value& b) noexcept { return a.equal(b); }
  friend bool operator==(const value& a, const boost::json::value& b) noexcept { return a.equal(b); }

 private:
  template <class T>
  bool is() const noexcept {
    return std::holds_alternative<T>(data_);
  }
  template <class To, class From>
  value& assign(To& to, From&& from) {
    to = std::forward<From>(from);
    return *this;
  }
  // From a value with another allocator, maybe.
  template <class Other>
  void take(Other&& other) {
    if (other.is_object()) {
      data_.template emplace<object_type>(std::forward<Other>(other).as_object(), allocator_);
    } else if (other.is_array()) {
      data_.template emplace<array_type>(std::forward<Other>(other).as_array(), allocator_);
    } else if (other.is_string()) {
      data_.template emplace<string_type>(std::forward<Other>(other).as_string(), allocator_);
    } else {
      data_ = other.data_;
    }
  }
  template <class Other>
  bool equal(const Other& other) const {
    if (other.is_null()) return is_null();
    if (other.is_bool()) return is_bool() && as_bool() == other.as_bool();
    if (other.is_int64()) return equals_integer(other.as_int64());
    if (other.is_uint64()) return equals_integer(other.as_uint64());
    if (other.is_double()) return is_double() && as_double() == other.as_double();
    if (other.is_array()) return is_array() && as_array() == other.as_array();
    if (other.is_object()) return is_object() && as_object() == other.as_object();
    return is_string() && std::string_view(as_string().data(), as_string().size()) ==
                              std::string_view(other.as_string().data(), other.as_string().size());
  }
  template <class Number>
  bool equals_integer(Number number) const {
    if (is_int64()) return std::cmp_equal(as_int64(), number);
    return is_uint64() && std::cmp_equal(as_uint64(), number);
  }

  Allocator allocator_;
  std::variant<null_type, bool, std::int64_t, std::uint64_t, double, object_type, array_type, string_type> data_;
};

}  // namespace metall::json
