// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places beside a store's blocks in which what must happen only once leaves its stamp, one for each call that is under
// way: they are used again, so that there are never more than calls at one time.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "base/mutex.hpp"

namespace farheap::engines {

class StampSlots {
 public:
  // One is had until this goes.
  class Had {
   public:
    explicit Had(StampSlots& slots) : slots_(slots), number_(slots.take()) {}
    ~Had() { slots_.give(number_); }
    Had(const Had&) = delete;
    Had& operator=(const Had&) = delete;
    [[nodiscard]] std::size_t number() const { return number_; }

   private:
    StampSlots& slots_;
    std::size_t number_;
  };
  [[nodiscard]] bool any_used() const {
    const base::LockGuard lock(mutex_);
    return count_ > 0;
  }

 private:
  [[nodiscard]] std::size_t take() {
    const base::LockGuard lock(mutex_);
    if (free_.empty()) return count_++;
    const auto number = free_.back();
    free_.pop_back();
    return number;
  }
  void give(std::size_t number) {
    const base::LockGuard lock(mutex_);
    free_.push_back(number);
  }

  mutable base::Mutex mutex_;
  std::vector<std::size_t> free_ FARHEAP_GUARDED_BY(mutex_);
  std::size_t count_ FARHEAP_GUARDED_BY(mutex_) = 0;
};

}  // namespace farheap::engines
