// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/file_store.hpp"

#include <cerrno>
#include <cstring>

#include "base/units.hpp"
#include "store/batch.hpp"

namespace farheap::store {

FileStore::FileStore(std::string place, std::size_t block_bytes) : place_(std::move(place)) {
  limits_ = {.block_bytes = block_bytes,
             .largest_value_bytes = 16 * base::kMiB,
             .largest_batch_bytes = 256 * base::kMiB,
             .largest_batch_operations = 4096,
             .best_run_bytes = base::kMiB};
}

os::IoRequest FileStore::request(const Get& entry) const {
  return {.write = false,
          .offset = entry.block * limits_.block_bytes,
          .data = entry.into.data(),
          .bytes = entry.into.size()};
}

os::IoRequest FileStore::request(const Put& entry) const {
  // Never written through: a request that writes only reads from its memory.
  return {.write = true,
          .offset = entry.block * limits_.block_bytes,
          .data = const_cast<std::byte*>(entry.from.data()),
          .bytes = entry.from.size()};
}

Outcome outcome_of(const os::IoRequest& io, const char*& why) {
  if (io.error == 0 && io.done == io.bytes) return Outcome::kOk;
  if (io.error == 0) {
    why = "the file was cut off behind our back";
    return Outcome::kCorrupt;
  }
  why = io.error == EFBIG
            ? "the file may not grow: `ulimit -f` is set, or the file system allows no larger one; raise the "
              "limit, or use a store elsewhere"
            : strerrordesc_np(io.error);
  const bool full = io.error == ENOSPC || io.error == EDQUOT;
  return io.write && full ? Outcome::kNoSpace : Outcome::kFailed;
}

// check(), then the entries in groups of kTogether, then summary().
template <class Entry, class Together>
Status FileStore::in_groups(std::span<Entry> batch, Together together) {
  if (auto ok = check(batch, limits_, capabilities(), *this); !ok) return ok;
  const char* why = "";
  for (std::size_t at = 0; at < batch.size(); at += kTogether) {
    together(batch.subspan(at, std::min(kTogether, batch.size() - at)), why);
  }
  return summary(batch, *this, why);
}

Status FileStore::get(std::span<Get> batch) {
  return in_groups(batch, [this](std::span<Get> group, const char*& why) { get_together(group, why); });
}

Status FileStore::put(std::span<Put> batch) {
  return in_groups(batch, [this](std::span<Put> group, const char*& why) { put_together(group, why); });
}

}  // namespace farheap::store
