// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/slot_io.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace farheap::segment {
namespace {

// Calls issue(runs) for pieces that keep to the store's limits.
template <class Bytes, class Issue>
Status in_batches(const Limits& limits, std::span<const SlotRun<Bytes>> runs, Issue issue) {
  while (!runs.empty()) {
    std::size_t count = 0, bytes = 0;
    while (count < runs.size() && count < limits.largest_batch_operations &&
           (count == 0 || bytes + runs[count].size() <= limits.largest_batch_bytes)) {
      bytes += runs[count++].size();
    }
    if (Status status = issue(runs.first(count)); !status) return status;
    runs = runs.subspan(count);
  }
  return {};
}

}  // namespace

std::size_t longest_read(const Store& store) {
  const Limits limits = store.limits();
  return std::min(limits.largest_value_bytes, std::max(limits.best_run_bytes, base::kPageBytes));
}

std::size_t longest_write(const Store& store) { return store.limits().largest_value_bytes; }

Status read_slots(Store& store, std::span<const SlotRead> runs) {
  return in_batches(store.limits(), runs, [&](std::span<const SlotRead> some) -> Status {
    std::vector<Get> batch;
    for (const SlotRead& run : some) batch.push_back({.block = run.first, .into = {run.bytes, run.size()}});
    if (Status status = store.get(batch); !status) return status;
    for (const Get& one : batch) {
      if (one.outcome == Outcome::kOk) continue;
      return fail(ErrorCode::kCorrupt, "cannot read a page that was written", fmt::format("block {}", one.block),
                  store.describe() + " does not have it any more");
    }
    return {};
  });
}

Status write_slots(Store& store, std::span<const SlotWrite> runs) {
  return in_batches(store.limits(), runs, [&](std::span<const SlotWrite> some) -> Status {
    std::vector<Put> batch;
    for (const SlotWrite& run : some) batch.push_back({.block = run.first, .from = {run.bytes, run.size()}});
    return store.put(batch);
  });
}

}  // namespace farheap::segment
