// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// etcd: for what must agree, and for small heaps: an etcd cluster holds 2 GiB unless it is told otherwise, on every
// member, and each write is on the disks of a quorum before it is acknowledged. So nothing acknowledged is lost while a
// quorum lives. The keys are specified in docs/formats.md.
//
// Whatever got no answer is found out by reading back: add() and compare-and-swap are done once and only once.
#include <fmt/format.h>

#include "engines/engine_table.hpp"
#include "engines/etcd/blocks.hpp"
#include "engines/space/keeper.hpp"
#include "engines/space/server_store.hpp"

namespace farheap::engines {

store::StoreResult open_etcd(const std::string& place, const store::Parameters& parameters,
                             const StoreOptions& options) {
  constexpr std::size_t kLargestBlock = std::size_t{1} << 20;
  if (options.block_bytes > kLargestBlock) {
    const auto where = etcd::etcd_place(place);
    if (!where) return fail(where.error());
    return fail(ErrorCode::kInvalidArgument, "cannot open the store", where->shown,
                fmt::format("etcd takes no blocks of {} bytes", options.block_bytes), "use blocks of at most 1 MiB");
  }
  return open_server_store<etcd::Client, etcd::Space, etcd::Blocks>(place, parameters, options);
}

const store::Keeper kEtcdKeeper = keeper_of<etcd::Client, etcd::Stores>();

}  // namespace farheap::engines
