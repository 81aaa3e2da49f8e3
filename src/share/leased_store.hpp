// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store of a heap that a lease is held for: nothing is written without it, and nothing is handed out that was read
// after it was lost.
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
  Status erase(std::uint64_t first, std::uint64_t count) override;
  // Without the leases.
  Result<StoreUsage> usage() override;

 private:
  SegmentLeases& leases_;
};

}  // namespace farheap::share
