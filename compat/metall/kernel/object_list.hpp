// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of a store's objects, as they were when they were asked for: what Metall's iterators and accessors
// walk over.
//
// Thread-safety: a list that is only read may be shared.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace metall::kernel {

using type_id_type = std::size_t;

// That of std::type_info::hash_code(), from the name alone: libstdc++ and libc++ both hash it like a string view.
inline type_id_type type_id_of(std::string_view type_name) { return std::hash<std::string_view>{}(type_name); }

class object_entry {
 public:
  object_entry() = default;
  object_entry(std::string name, std::ptrdiff_t offset, std::size_t length, type_id_type type, std::string description)
      : name_(std::move(name)),
        offset_(offset),
        length_(length),
        type_id_(type),
        description_(std::move(description)) {}

  const std::string& name() const noexcept { return name_; }         // of a unique object: its type's
  const std::ptrdiff_t& offset() const noexcept { return offset_; }  // from manager.get_address()
  const std::size_t& length() const noexcept { return length_; }
  const type_id_type& type_id() const noexcept { return type_id_; }
  const std::string& description() const noexcept { return description_; }
  std::string& description() noexcept { return description_; }
  template <class T>
  bool is_type() const noexcept {
    return type_id_ == type_id_of(typeid(T).name());
  }

 private:
  std::string name_;
  std::ptrdiff_t offset_ = 0;
  std::size_t length_ = 0;
  type_id_type type_id_ = 0;
  std::string description_;
};

using object_list = std::shared_ptr<std::vector<object_entry>>;

// One made by default is the end of every list.
class object_iterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = object_entry;
  using difference_type = std::ptrdiff_t;
  using pointer = const object_entry*;
  using reference = const object_entry&;

  object_iterator() = default;
  object_iterator(object_list list, std::size_t at) : list_(std::move(list)), at_(at) {}

  // At the end, and where there is nothing: an entry without a name and with length 0.
  reference operator*() const {
    static const object_entry nothing;
    return is_end() ? nothing : (*list_)[at_];
  }
  pointer operator->() const { return &**this; }
  object_iterator& operator++() {
    ++at_;
    return *this;
  }
  object_iterator operator++(int) {
    object_iterator before = *this;
    ++at_;
    return before;
  }
  friend bool operator==(const object_iterator& a, const object_iterator& b) {
    if (a.is_end() || b.is_end()) return a.is_end() == b.is_end();
    return a.at_ == b.at_ && a->offset() == b->offset();
  }
  bool is_end() const { return list_ == nullptr || at_ >= list_->size(); }

 private:
  object_list list_;
  std::size_t at_ = 0;
};

}  // namespace metall::kernel
