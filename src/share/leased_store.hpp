// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store of a heap that a lease is held for: nothing is written without it, nor later than it lasts, nor outside of
// what is reserved for its owner (segment_leases.hpp); and nothing is handed out that was read after it was lost.
//
// A write that the end of the lease cuts short is made again as soon as the lease is renewed, if it says no version
// that it expects: the same bytes at the same place are the same once and twice.
//
// Thread-safety: as Store.
#pragma once

#include <memory>

#include "share/segment_leases.hpp"
#include "store/decorator.hpp"

namespace farheap::share {

class LeasedStore final : public store::Decorator {
 public:
  // The leases outlive it.
  LeasedStore(std::unique_ptr<Store> inner, SegmentLeases& leases)
      : Decorator("leased", std::move(inner)), leases_(leases) {}
  std::string describe() const override { return inner_->describe(); }
  Status get(std::span<Get> batch) override;
  Status put(std::span<Put> batch) override;
  // Roots are not erased but replaced, where they are still what they were, by what says that there is none: an erasure
  // that came late would take the next writer's.
  Status erase(std::uint64_t first, std::uint64_t count) override;
  // After one that failed a commit may be taken back that somebody reads already: what it refers to lies below the
  // fence of those who do not know of it.
  Status sync() override;
  // Without the leases.
  Result<StoreUsage> usage() override;

 private:
  [[nodiscard]] Status put_once(std::span<Put> batch);
  [[nodiscard]] Status clear_roots(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] Status clear_root(std::uint64_t number);

  SegmentLeases& leases_;
};

}  // namespace farheap::share
