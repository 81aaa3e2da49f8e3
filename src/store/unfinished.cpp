// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/unfinished.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "store/aligned_buffer.hpp"

namespace farheap::store {
namespace {

// The least block has 512 bytes. The rest of the mark's block is zeros.
constexpr std::string_view kMark = "Farheap: a copy that is not finished \xF3\x5A\x91\x0C\xD7\x68\xE2\x3B\x84\x1F";

}  // namespace

Status mark_unfinished(Store& store) {
  constexpr char kWhat[] = "cannot copy the store";
  AlignedBuffer buffer(store.limits().block_bytes);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, kWhat, store.describe(), "no memory");
  const auto bytes = buffer.part(0, store.limits().block_bytes);
  std::ranges::fill(bytes, std::byte{0});
  std::memcpy(bytes.data(), kMark.data(), kMark.size());
  Put mark{.block = 0, .from = bytes};
  if (has(store.capabilities(), Capability::kVersions)) mark.expected = 0;
  Status put = store.put({&mark, 1});
  if (mark.outcome == Outcome::kConflict) {
    return fail(ErrorCode::kConflict, kWhat, store.describe(), "somebody else has begun to write there",
                "name another place");
  }
  return put ? store.sync() : put;
}

bool is_unfinished(Store& store) {
  AlignedBuffer buffer(store.limits().block_bytes);
  if (!buffer.is_there()) return false;
  Get get{.block = 0, .into = buffer.part(0, store.limits().block_bytes)};
  if (const Status got = store.get({&get, 1}); !got || get.outcome != Outcome::kOk) return false;
  return std::memcmp(get.into.data(), kMark.data(), kMark.size()) == 0;
}

Error unfinished_error(const std::string& shown) {
  return {ErrorCode::kCorrupt, "cannot open the store", shown,
          "it is a copy that was broken off, and holds only a part of what was to be copied",
          fmt::format("`farheap store rm '{}'` removes it; then copy again", shown)};
}

}  // namespace farheap::store
