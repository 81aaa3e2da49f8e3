// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <iterator>

namespace metall::utility {

// Over the elements of all containers of a container, one after the other.
template <class OuterIterator, class InnerIterator>
class container_of_containers_iterator_adaptor {
 public:
  using difference_type = typename std::iterator_traits<InnerIterator>::difference_type;
  using value_type = typename std::iterator_traits<InnerIterator>::value_type;
  using pointer = typename std::iterator_traits<InnerIterator>::pointer;
  using reference = typename std::iterator_traits<InnerIterator>::reference;
  using iterator_category = std::forward_iterator_tag;

  container_of_containers_iterator_adaptor(OuterIterator outer, OuterIterator outer_end)
      : outer_(outer), outer_end_(outer_end), inner_() {
    if (outer_ == outer_end_) return;
    inner_ = std::begin(*outer_);
    skip_empty();
  }
  // At `inner`, an element of *outer.
  container_of_containers_iterator_adaptor(OuterIterator outer, InnerIterator inner, OuterIterator outer_end)
      : outer_(outer), outer_end_(outer_end), inner_(inner) {
    if (outer_ != outer_end_) skip_empty();
  }

  container_of_containers_iterator_adaptor& operator++() {
    ++inner_;
    skip_empty();
    return *this;
  }
  container_of_containers_iterator_adaptor operator++(int) {
    auto before = *this;
    ++*this;
    return before;
  }
  reference operator*() const { return *inner_; }
  pointer operator->() const { return &*inner_; }

  bool equal(const container_of_containers_iterator_adaptor& other) const {
    if (outer_ != other.outer_) return false;
    return outer_ == outer_end_ || inner_ == other.inner_;
  }
  friend bool operator==(const container_of_containers_iterator_adaptor& a,
                         const container_of_containers_iterator_adaptor& b) {
    return a.equal(b);
  }

 private:
  void skip_empty() {
    while (inner_ == std::end(*outer_)) {
      if (++outer_ == outer_end_) return;
      inner_ = std::begin(*outer_);
    }
  }

  OuterIterator outer_, outer_end_;
  InnerIterator inner_;
};

}  // namespace metall::utility
