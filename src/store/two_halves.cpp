// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/two_halves.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "store/aligned_buffer.hpp"
#include "store/marks.hpp"
#include "store/secrets.hpp"
#include "store/split_store.hpp"

namespace farheap::store {
namespace {

constexpr char kCannotOpenHalves[] = "cannot open the store";

struct There {
  bool pages = false;
  bool sync = false;
};

// In the order in which neither a creation nor a removal meanwhile looks like a loss for long.
Result<There> look(const SplitUri& parts, const StoreOptions& options) {
  if (auto ok = check_split(parts); !ok) return fail(std::move(ok.error()));
  There there;
  auto sync = is_store_there(parts.sync, options);
  if (!sync) return fail(std::move(sync.error()));
  auto pages = is_store_there(parts.pages, options);
  if (!pages) return fail(std::move(pages.error()));
  there.sync = *sync, there.pages = *pages;
  return there;
}

Error half_error(const SplitUri& parts, bool pages_are_lost) {
  const std::string pages = without_secrets(parts.pages), sync = without_secrets(parts.sync);
  const std::string both = SplitUri{pages, sync}.text();
  return {
      ErrorCode::kCorrupt, "one of two stores is missing", both,
      pages_are_lost
          ? fmt::format("pages={} is not there, and what sync={} refers to was in it", pages, sync)
          : fmt::format("sync={} is not there, and only it knows what the blocks in pages={} are", sync, pages),
      fmt::format("bring it back, or name the one that belongs to the other; if it is lost, `farheap store rm '{}'` "
                  "removes what is left",
                  both)};
}

// What `pages` holds beside its mark. kConflict: it holds something else than the pages of two stores.
Result<std::uint64_t> pages_in(Store& pages, const SplitUri& parts) {
  auto held = pages.usage();
  if (!held) return fail(std::move(held.error()));
  const std::uint64_t beside_mark = held->blocks - std::min<std::uint64_t>(held->blocks, 1);
  if (mark_of(pages) == Mark::kPagesOfTwo) return beside_mark;
  AlignedBuffer buffer(pages.limits().block_bytes);
  if (!buffer.is_there()) return fail(ErrorCode::kNoSpace, kCannotOpenHalves, pages.describe(), "no memory");
  Get root{.block = 0, .into = buffer.part(0, pages.limits().block_bytes)};
  if (Status got = pages.get({&root, 1}); !got) return fail(std::move(got.error()));
  if (root.outcome == Outcome::kAbsent) return held->blocks;    // made before there were marks, or just begun
  if (mark_of(pages) == Mark::kPagesOfTwo) return beside_mark;  // somebody else has put it there meanwhile
  return fail(ErrorCode::kConflict, kCannotOpenHalves,
              SplitUri{without_secrets(parts.pages), without_secrets(parts.sync)}.text(),
              fmt::format("{} holds something of its own, and no pages of two stores", without_secrets(parts.pages)),
              "open it by itself, or name another place");
}

Status check_places(const SplitUri& parts) {
  if (parts.pages != parts.sync) return {};
  return fail(ErrorCode::kInvalidArgument, kCannotOpenHalves,
              SplitUri{without_secrets(parts.pages), without_secrets(parts.sync)}.text(), "both are the same store",
              "name two, or that one by itself");
}

// Where both may be opened together, `pages` gets its mark.
Status look_into(Store& pages, Store& sync, const SplitUri& parts) {
  if (auto held = pages_in(pages, parts); !held) return fail(std::move(held.error()));
  if (mark_of(sync) == Mark::kPagesOfTwo) {
    return fail(ErrorCode::kConflict, kCannotOpenHalves, without_secrets(parts.sync),
                "it was made as the pages= of two", "say which one is which as it was when they were made");
  }
  if (mark_of(pages)) return {};
  Status marked = put_mark(pages, Mark::kPagesOfTwo, kCannotOpenHalves);
  return marked || mark_of(pages) == Mark::kPagesOfTwo ? Status{} : marked;  // somebody else may have been faster
}

}  // namespace

StoreResult open_two(const SplitUri& parts, const StoreOptions& options) {
  if (auto ok = check_split(parts); !ok) return fail(std::move(ok.error()));
  const bool is_kept = options.lifetime == Lifetime::kKeep;
  There there;
  if (is_kept) {
    if (auto ok = check_places(parts); !ok) return fail(std::move(ok.error()));
    auto found = look(parts, options);
    if (!found) return fail(std::move(found.error()));
    there = *found;
    if (there.sync && !there.pages) return fail(half_error(parts, true));
  }
  auto pages = open_marked(parts.pages, options);
  if (!pages) return pages;
  if (is_kept && there.pages && !there.sync) {  // before anything is made
    const auto held = pages_in(**pages, parts);
    if (!held) return fail(held.error());
    if (*held != 0) return fail(half_error(parts, false));
  }
  auto sync = open_marked(parts.sync, options);  // a copy that is not finished has its mark there
  if (!sync) return sync;
  if (is_kept) {
    if (Status ok = look_into(**pages, **sync, parts); !ok) return fail(std::move(ok.error()));
  }
  return join_stores(std::move(*pages), std::move(*sync), is_kept);
}

Result<bool> are_both_there(const SplitUri& parts, const StoreOptions& options) {
  auto there = look(parts, options);
  if (!there) return fail(std::move(there.error()));
  if (there->sync && !there->pages) return fail(half_error(parts, true));
  if (there->sync || !there->pages) return there->sync;
  StoreOptions kept = options;
  kept.lifetime = Lifetime::kKeep;
  const auto pages = open_marked(parts.pages, kept);
  if (!pages) return false;  // made with blocks of another size, or what nobody can tell
  auto held = pages_in(**pages, parts);
  if (!held && held.error().code == ErrorCode::kConflict) return fail(std::move(held.error()));
  if (held && *held != 0) return fail(half_error(parts, false));
  return false;
}

}  // namespace farheap::store
