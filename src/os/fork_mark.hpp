// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tells a forked child from its parent, at the price of reading a byte: a page that the kernel empties in every child
// that has memory of its own. The child of a vfork(), which works in its parent's, is not one.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>

namespace farheap::os {

class ForkMark {
 public:
  ForkMark();
  ~ForkMark();
  ForkMark(const ForkMark&) = delete;
  ForkMark& operator=(const ForkMark&) = delete;

  // Forked since set().
  [[nodiscard]] bool is_gone() const { return mark_->load(std::memory_order_acquire) == 0; }
  void set() { mark_->store(1, std::memory_order_release); }
  // True for one of those that ask at once.
  [[nodiscard]] bool set_if_gone() { return is_gone() && mark_->exchange(1) == 0; }

 private:
  std::atomic<char>* mark_;
};

}  // namespace farheap::os
