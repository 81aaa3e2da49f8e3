// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "store/aligned_buffer.hpp"

namespace farheap::store {
namespace {

// The least block has 512 bytes. The rest of the mark's block is zeros.
constexpr std::string_view kUnfinishedCopy =
    "Farheap: a copy that is not finished \xF3\x5A\x91\x0C\xD7\x68\xE2\x3B\x84\x1F";
constexpr std::string_view kPagesOfTwo = "Farheap: the pages of two stores \x6B\xC4\x08\xEE\x91\x37\xD5\x2A\x7C\xB0";

std::string_view text_of(Mark mark) { return mark == Mark::kUnfinishedCopy ? kUnfinishedCopy : kPagesOfTwo; }

}  // namespace

Status put_mark(Store& store, Mark mark, const char* what) {
  AlignedBuffer buffer(store.limits().block_bytes);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, what, store.describe(), "no memory");
  const auto bytes = buffer.part(0, store.limits().block_bytes);
  std::ranges::fill(bytes, std::byte{0});
  std::memcpy(bytes.data(), text_of(mark).data(), text_of(mark).size());
  Put put{.block = 0, .from = bytes};
  if (has(store.capabilities(), Capability::kVersions)) put.expected = 0;
  Status done = store.put({&put, 1});
  if (put.outcome == Outcome::kConflict) {
    return fail(ErrorCode::kConflict, what, store.describe(), "somebody else has begun to write there",
                "name another place");
  }
  return done ? store.sync() : done;
}

std::optional<Mark> mark_of(Store& store) {
  AlignedBuffer buffer(store.limits().block_bytes);
  if (!buffer.is_there()) return {};
  Get get{.block = 0, .into = buffer.part(0, store.limits().block_bytes)};
  if (const Status got = store.get({&get, 1}); !got || get.outcome != Outcome::kOk) return {};
  for (const Mark mark : {Mark::kUnfinishedCopy, Mark::kPagesOfTwo}) {
    if (std::memcmp(get.into.data(), text_of(mark).data(), text_of(mark).size()) == 0) return mark;
  }
  return {};
}

Error mark_error(Mark mark, const std::string& shown) {
  if (mark == Mark::kPagesOfTwo) {
    return {ErrorCode::kConflict, "cannot open the store", shown,
            "it was made as one of two: what is in it is found by the other one",
            fmt::format("write 'pages={},sync=URI', with the other one's URI", shown)};
  }
  return {ErrorCode::kCorrupt, "cannot open the store", shown,
          "it is a copy that was broken off, and holds only a part of what was to be copied",
          fmt::format("`farheap store rm '{}'` removes it; then copy again", shown)};
}

}  // namespace farheap::store
