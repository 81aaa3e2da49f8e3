// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>

namespace metall::container {

// Where an element of a string_key_store is.
template <class Iterator>
class string_key_store_locator {
 public:
  string_key_store_locator(Iterator iterator) : iterator_(std::move(iterator)) {}

  string_key_store_locator& operator++() {
    ++iterator_;
    return *this;
  }
  string_key_store_locator operator++(int) {
    auto before = *this;
    ++iterator_;
    return before;
  }
  friend bool operator==(const string_key_store_locator& a, const string_key_store_locator& b) {
    return a.iterator_ == b.iterator_;
  }

 private:
  template <class Value, class Allocator>
  friend class string_key_store;
  Iterator iterator_;
};

}  // namespace metall::container
