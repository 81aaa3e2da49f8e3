// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/checksum_store.hpp"

#include <xxhash.h>

#include "store/kept_seals.hpp"
#include "store/kinds.hpp"
#include "store/scratch_seals.hpp"

namespace farheap::store {

Sum sum_of(std::span<const std::byte> block) {
  const XXH128_hash_t hash = XXH3_128bits(block.data(), block.size());
  if (hash.low64 == 0 && hash.high64 == 0) return {1, 0};
  return {hash.low64, hash.high64};
}

std::unique_ptr<Store> make_kept_checksums(std::unique_ptr<Store> inner) {
  return std::make_unique<KeptSeals<Checksummer>>(std::move(inner), Checksummer());
}

StoreResult open_checksum(const OpenInner& open_inner, const Parameters&, const StoreOptions& options) {
  auto inner = open_inner(options);
  if (!inner) return inner;
  if (options.lifetime == Lifetime::kScratch) {
    return std::make_unique<ScratchSeals<Checksummer>>(std::move(*inner), Checksummer());
  }
  if (!has((*inner)->capabilities(), Capability::kCounters)) {
    return fail(ErrorCode::kUnavailable, "cannot open the store", "checksum+" + (*inner)->describe(),
                "checksum+ over a kept store needs counters", "put it over file: or lmdb:");
  }
  return make_kept_checksums(std::move(*inner));
}

}  // namespace farheap::store
