// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A page space that counts what is asked of it.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>

#include "base/units.hpp"
#include "segment/plain_space.hpp"

namespace farheap::heap {

class SpySpace final : public segment::PageSpace {
 public:
  explicit SpySpace(std::size_t capacity_bytes = 4 * base::kGiB) : plain_(capacity_bytes) {}

  std::byte* base() const override { return plain_.base(); }
  std::size_t capacity_bytes() const override { return plain_.capacity_bytes(); }
  std::byte* obtain(std::size_t bytes, std::size_t alignment) override {
    std::byte* at = plain_.obtain(bytes, alignment);
    if (at != nullptr) obtained += bytes;
    return at;
  }
  void give_back(std::byte* at, std::size_t bytes) override {
    given_back += bytes;
    plain_.give_back(at, bytes);
  }
  void discard(std::byte* at, std::size_t bytes) override {
    discarded += bytes;
    plain_.discard(at, bytes);
  }
  bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) override {
    bool done = plain_.extend(at, bytes, new_bytes);
    if (done) extended += new_bytes - bytes;
    return done;
  }
  void lock_for_fork() { plain_.lock_for_fork(); }
  void unlock_after_fork() { plain_.unlock_after_fork(); }
  [[nodiscard]] std::size_t held() const { return obtained + extended - given_back; }

  std::atomic<std::size_t> obtained{0};
  std::atomic<std::size_t> given_back{0};
  std::atomic<std::size_t> discarded{0};
  std::atomic<std::size_t> extended{0};

 private:
  segment::PlainSpace plain_;
};

}  // namespace farheap::heap
