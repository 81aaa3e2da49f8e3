// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages of ordinary anonymous memory: a reservation of addresses of which pieces become usable as they are handed
// out. Its pages never leave memory by our hand. It serves the runtime itself, and the benchmarks as the plain case.
// Never calls malloc; may be placement-constructed before main.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <farheap/result.hpp>

#include "base/mutex.hpp"
#include "segment/page_space.hpp"
#include "segment/run_allocator.hpp"

namespace farheap::segment {

enum class HugePages { kNo, kAdvise };  // kAdvise: MADV_HUGEPAGE over all of it
enum class InCores { kNo, kYes };       // whether core dumps have what is usable

class PlainSpace final : public PageSpace {
 public:
  // Requires: capacity_bytes a positive multiple of 2 MiB. The base is a multiple of 2 MiB.
  // Where the addresses cannot be had, status() says so and obtain() returns nullptr.
  explicit PlainSpace(std::size_t capacity_bytes, HugePages huge_pages = HugePages::kNo,
                      InCores in_cores = InCores::kYes) noexcept;
  PlainSpace(const PlainSpace&) = delete;
  PlainSpace& operator=(const PlainSpace&) = delete;
  ~PlainSpace() override;

  [[nodiscard]] Status status() const;

  [[nodiscard]] std::byte* base() const override { return reservation_.base; }
  [[nodiscard]] std::size_t capacity_bytes() const override { return reservation_.bytes; }
  [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) override;
  void give_back(std::byte* at, std::size_t bytes) override;
  void discard(std::byte* at, std::size_t bytes) override;
  [[nodiscard]] bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) override;

  // Around fork(): no other thread is inside while the child is made. One unlock in the parent, one in the child.
  void lock_for_fork() noexcept FARHEAP_ACQUIRE(mutex_) { mutex_.lock(); }
  void unlock_after_fork() noexcept FARHEAP_RELEASE(mutex_) { mutex_.unlock(); }

 private:
  struct Reservation {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
    int errno_value = 0;
    Reservation(std::size_t wanted, HugePages huge_pages) noexcept;
  };
  [[nodiscard]] bool make_usable(std::byte* at, std::size_t bytes) noexcept FARHEAP_REQUIRES(mutex_);
  static void drop(std::byte* at, std::size_t bytes) noexcept;

  std::size_t wanted_bytes_;
  InCores in_cores_;
  Reservation reservation_;
  base::Mutex mutex_;
  RunAllocator runs_ FARHEAP_GUARDED_BY(mutex_);
  std::size_t usable_bytes_ FARHEAP_GUARDED_BY(mutex_) = 0;  // this much from the base is readable and writable
};

}  // namespace farheap::segment
