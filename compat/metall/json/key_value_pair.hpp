// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <metall/json/json_fwd.hpp>
#include <metall/json/value.hpp>
#include <string_view>
#include <utility>

namespace metall::json {

// A member of an object.
template <class Char, class Traits, class Allocator>
class key_value_pair {
  using text_allocator_type = typename std::allocator_traits<Allocator>::template rebind_alloc<Char>;
  using text_type = basic_string<Char, Traits, text_allocator_type>;

 public:
  using char_type = Char;
  using char_traits = Traits;
  using allocator_type = Allocator;
  using key_type = std::basic_string_view<Char, Traits>;
  using value_type = json::value<Allocator>;
  using size_type = std::size_t;

  key_value_pair(key_type key, const value_type& value, const Allocator& allocator = Allocator())
      : key_(key.data(), key.size(), text_allocator_type(allocator)), value_(value, allocator) {}
  key_value_pair(key_type key, value_type&& value, const Allocator& allocator = Allocator())
      : key_(key.data(), key.size(), text_allocator_type(allocator)), value_(std::move(value), allocator) {}
  key_value_pair(const key_value_pair&) = default;
  key_value_pair(const key_value_pair& other, const Allocator& allocator)
      : key_(other.key_, text_allocator_type(allocator)), value_(other.value_, allocator) {}
  key_value_pair(key_value_pair&&) noexcept = default;
  key_value_pair(key_value_pair&& other, const Allocator& allocator)
      : key_(std::move(other.key_), text_allocator_type(allocator)), value_(std::move(other.value_), allocator) {}
  key_value_pair& operator=(const key_value_pair&) = default;
  key_value_pair& operator=(key_value_pair&&) noexcept = default;
  void swap(key_value_pair& other) noexcept {
    key_.swap(other.key_);
    value_.swap(other.value_);
  }
  friend void swap(key_value_pair& a, key_value_pair& b) noexcept { a.swap(b); }

  key_type key() const noexcept { return {key_.data(), key_.size()}; }
  const Char* key_c_str() const noexcept { return key_.c_str(); }
  value_type& value() noexcept { return value_; }
  const value_type& value() const noexcept { return value_; }
  allocator_type get_allocator() const noexcept { return value_.get_allocator(); }

  friend bool operator==(const key_value_pair& a, const key_value_pair& b) noexcept {
    return a.key() == b.key() && a.value_ == b.value_;
  }
  friend bool operator==(const key_value_pair& a, const boost::json::key_value_pair& b) noexcept {
    return a.key() == key_type(b.key().data(), b.key().size()) && a.value_ == b.value();
  }

 private:
  text_type key_;
  value_type value_;
};

}  // namespace metall::json
