// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "share/leased_store.hpp"

#include <algorithm>
#include <vector>

#include "segment/superblock.hpp"

namespace farheap::share {
namespace {

constexpr std::uint64_t kRoots = segment::kSuperblocks;  // replaced by compare-and-swap, below every fence

// Where the blocks of pages and books end.
std::uint64_t end_of(std::span<const Put> batch, std::size_t block_bytes) {
  std::uint64_t end = 0;
  for (const Put& one : batch) {
    const std::uint64_t its_end = one.block + one.from.size() / block_bytes;
    if (one.block < kFirstLease && its_end > kRoots) end = std::max(end, its_end);
  }
  return end;
}

bool may_still_arrive(const Put& one) {
  return one.outcome == Outcome::kUnknown || one.outcome == Outcome::kFailed || one.outcome == Outcome::kPending;
}

}  // namespace

Status LeasedStore::get(std::span<Get> batch) {
  Status status = inner_->get(batch);
  Status sure = leases_.make_sure();
  if (sure) return status;
  for (Get& one : batch) one.outcome = Outcome::kFailed;
  return sure;
}

Status LeasedStore::put(std::span<Put> batch) {
  constexpr int kTries = 8;
  const bool is_repeatable = std::ranges::none_of(batch, [](const Put& one) { return one.expected.has_value(); });
  for (int i = 1;; ++i) {
    if (Status sure = leases_.make_sure(end_of(batch, inner_->limits().block_bytes)); !sure) {
      for (Put& one : batch) one.outcome = Outcome::kFailed;
      return sure;
    }
    const store::Deadline until = leases_.sure_until();
    Status status = put_once(batch);
    if (status || !is_repeatable || !until.has_passed() || i == kTries) return status;
    for (Put& one : batch) one.outcome = Outcome::kPending;
  }
}

Status LeasedStore::put_once(std::span<Put> batch) {
  const store::CallDeadline until(leases_.sure_until());
  Status status = inner_->put(batch);
  if (std::ranges::any_of(batch, may_still_arrive)) leases_.doubt();
  return status;
}

Status LeasedStore::erase(std::uint64_t first, std::uint64_t count) {
  if (first < kRoots && count > 0) {
    if (Status status = clear_roots(first, std::min(first + count, kRoots)); !status) return status;
    const std::uint64_t roots = std::min(count, kRoots - first);
    first += roots, count -= roots;
  }
  // Nobody has written anything behind what is reserved, and somebody else may.
  const std::uint64_t reserved = leases_.reserved();
  count = first < reserved ? std::min(count, reserved - first) : 0;
  if (count == 0) return {};
  if (Status sure = leases_.make_sure(); !sure) return sure;
  const store::CallDeadline until(leases_.sure_until());
  Status status = inner_->erase(first, count);
  if (!status) leases_.doubt();
  return status;
}

// The newest one last: in between, the heap is what it was.
Status LeasedStore::clear_roots(std::uint64_t begin, std::uint64_t end) {
  const auto found = segment::read_superblock(*this);
  const std::uint64_t newest = found ? found->content.commit % kRoots : 0;
  for (const std::uint64_t number : {kRoots - 1 - newest, newest}) {
    if (number < begin || number >= end) continue;
    if (Status status = clear_root(number); !status) return status;
  }
  return {};
}

Status LeasedStore::clear_root(std::uint64_t number) {
  std::vector<std::byte> block(inner_->limits().block_bytes);
  Get there{.block = number, .into = block};
  if (Status read = get({&there, 1}); !read && there.outcome != Outcome::kCorrupt) return read;
  if (there.outcome == Outcome::kAbsent) return {};
  segment::encode_nothing(block);
  Put nothing{.block = number, .from = block, .expected = there.version};
  if (Status status = put({&nothing, 1}); !status) return status;
  if (nothing.outcome != Outcome::kConflict) return {};
  return fail(ErrorCode::kConflict, "cannot take back what was written", describe(), "somebody else has replaced it");
}

Status LeasedStore::sync() {
  Status status = inner_->sync();
  if (!status) leases_.doubt();
  return status;
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
