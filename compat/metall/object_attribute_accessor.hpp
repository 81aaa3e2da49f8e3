// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of the objects of a datastore that this program has not opened: as of its last commit. They are read
// once, when the accessor is made.
//
// Thread-safety: reading, any thread.
#pragma once

#include <cstddef>
#include <exception>
#include <farheap/heap.hpp>
#include <farheap/heap_facts.hpp>
#include <metall/kernel/manager_kernel.hpp>
#include <metall/kernel/object_list.hpp>
#include <metall/tags.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>

namespace metall {

class object_attribute_accessor {
 public:
  using size_type = std::size_t;
  using name_type = std::string;
  using offset_type = std::ptrdiff_t;
  using length_type = std::size_t;
  using description_type = std::string;
  using const_iterator = kernel::object_iterator;

  object_attribute_accessor() noexcept = default;
  object_attribute_accessor(const kernel::store_folder& folder, farheap::ObjectKind kind) noexcept {
    try {
      if (!folder.is_complete()) {
        kernel::log_error(__FILE__, __LINE__, folder.what_is_missing());
        return;
      }
      const auto facts = farheap::Heap::look(folder.uri());
      if (!facts) {
        kernel::log_error(__FILE__, __LINE__, facts.error().message());
        return;
      }
      folder_ = folder;
      list_ = kernel::manager_kernel::list(*facts, kind);
    } catch (const std::exception& error) {
      kernel::log_error(__FILE__, __LINE__, error.what());
    }
  }

  // Whether the store could be read.
  bool good() const noexcept { return list_ != nullptr; }
  size_type num_objects() const noexcept { return good() ? list_->size() : 0; }
  const_iterator begin() const noexcept { return {list_, 0}; }
  const_iterator end() const noexcept { return {}; }

  // Commits it at once. False, and nothing is changed, if somebody has the store open for writing.
  bool set_description(const_iterator position, const description_type& description) noexcept {
    if (!good() || position.is_end()) return false;
    try {
      auto heap = farheap::Heap::open(folder_->uri());
      farheap::Status status;
      if (heap) {
        const auto* const base = static_cast<const std::byte*>(heap->address());
        status = heap->describe(base + position->offset(), description);
        if (status) status = heap->commit();
      } else {
        status = farheap::fail(heap.error());
      }
      if (!status) {
        kernel::log_error(__FILE__, __LINE__, status.error().message());
        return false;
      }
      for (auto& one : *list_) {
        if (one.offset() == position->offset()) one.description() = description;
      }
      return true;
    } catch (const std::exception& error) {
      kernel::log_error(__FILE__, __LINE__, error.what());
      return false;
    }
  }

 protected:
  const_iterator find_name(std::string_view name) const noexcept {
    for (size_type i = 0; i < num_objects(); ++i) {
      if ((*list_)[i].name() == name) return {list_, i};
    }
    return {};
  }

 private:
  std::optional<kernel::store_folder> folder_;
  kernel::object_list list_;
};

class anonymous_object_attr_accessor : public object_attribute_accessor {
 public:
  using object_attribute_accessor::object_attribute_accessor;
};

class named_object_attr_accessor : public object_attribute_accessor {
 public:
  using object_attribute_accessor::object_attribute_accessor;
  using object_attribute_accessor::set_description;

  const_iterator find(const char* name) const noexcept { return find_name(name); }
  size_type count(const char* name) const noexcept { return find_name(name).is_end() ? 0 : 1; }
  bool set_description(const char* name, const description_type& description) noexcept {
    return set_description(find_name(name), description);
  }
};

// A unique object's name is that of its type: typeid(T).name().
class unique_object_attr_accessor : public named_object_attr_accessor {
 public:
  using named_object_attr_accessor::count;
  using named_object_attr_accessor::find;
  using named_object_attr_accessor::named_object_attr_accessor;
  using named_object_attr_accessor::set_description;

  template <class T>
  const_iterator find(const mtlldetail::unique_instance_t*) const noexcept {
    return find(typeid(T).name());
  }
  template <class T>
  size_type count(const mtlldetail::unique_instance_t*) const noexcept {
    return count(typeid(T).name());
  }
  template <class T>
  bool set_description(const mtlldetail::unique_instance_t*, const description_type& description) noexcept {
    return set_description(typeid(T).name(), description);
  }
};

}  // namespace metall
