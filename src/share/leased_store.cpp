// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "share/leased_store.hpp"

namespace farheap::share {

Status LeasedStore::get(std::span<Get> batch) {
  Status status = inner_->get(batch);
  Status sure = leases_.make_sure();
  if (sure) return status;
  for (Get& one : batch) one.outcome = Outcome::kFailed;
  return sure;
}

Status LeasedStore::put(std::span<Put> batch) {
  if (Status sure = leases_.make_sure(); !sure) {
    for (Put& one : batch) one.outcome = Outcome::kFailed;
    return sure;
  }
  return inner_->put(batch);
}

Status LeasedStore::erase(std::uint64_t first, std::uint64_t count) {
  if (Status sure = leases_.make_sure(); !sure) return sure;
  return inner_->erase(first, count);
}

Result<StoreUsage> LeasedStore::usage() {
  auto usage = inner_->usage();
  if (!usage) return usage;
  auto leases = leases_.blocks();
  if (!leases) return fail(std::move(leases.error()));
  usage->blocks -= std::min(usage->blocks, *leases);
  return usage;
}

}  // namespace farheap::share
