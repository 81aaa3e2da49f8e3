// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A place where a heap is about to be made out of another one. It is locked, and it is empty again if that fails.
//
// Thread-safety: plain values.
#pragma once

#include <memory>

#include "api/heap_lock.hpp"

namespace farheap::api {

class NewPlace {
 public:
  // What was begun there and not finished is removed. kConflict if there is a heap, or somebody is at it;
  // kInvalidArgument if no heap can be there.
  [[nodiscard]] static Result<NewPlace> claim(std::string_view uri, const char* what,
                                              std::chrono::milliseconds wait = Patience::usual());
  NewPlace(NewPlace&&) = default;
  NewPlace& operator=(NewPlace&&) = delete;
  // Removes what is there, unless keep() was called. Requires: its store is closed.
  ~NewPlace();

  [[nodiscard]] const HeapPlace& place() const { return held_->place; }
  [[nodiscard]] Result<std::unique_ptr<Store>> open() const { return held_->place.open(*held_->lock); }
  [[nodiscard]] const segment::VersionLeases& leases() const { return *held_->lock; }
  [[nodiscard]] HeapLock& lock() const { return *held_->lock; }
  void keep() { held_->removes = false; }
  // keep(), and somebody else has the lock from now on.
  [[nodiscard]] std::unique_ptr<HeapLock> keep_with_lock() {
    keep();
    return std::move(held_->lock);
  }
  // What went wrong here: a full disk in words that tell how to go on (`again`), all else as it is.
  [[nodiscard]] Error told(Error error, const char* what, std::string_view again) const;
  // It may be read from now on, in this process too.
  [[nodiscard]] Status let_readers_in() { return held_->lock->let_readers_in(); }

 private:
  [[nodiscard]] Status erase_blocks() const;
  struct Held {
    HeapPlace place;
    std::unique_ptr<HeapLock> lock;
    bool removes;
  };
  explicit NewPlace(Held held) : held_(std::make_unique<Held>(std::move(held))) {}
  std::unique_ptr<Held> held_;
};

}  // namespace farheap::api
