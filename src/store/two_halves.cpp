// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/two_halves.hpp"

#include <fmt/format.h>

#include "store/secrets.hpp"
#include "store/split_store.hpp"

namespace farheap::store {
namespace {

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

}  // namespace

StoreResult open_two(const SplitUri& parts, const StoreOptions& options) {
  if (auto ok = check_split(parts); !ok) return fail(std::move(ok.error()));
  There there;
  if (options.lifetime == Lifetime::kKeep) {
    auto found = look(parts, options);
    if (!found) return fail(std::move(found.error()));
    there = *found;
    if (there.sync && !there.pages) return fail(half_error(parts, true));
  }
  auto pages = open_store(parts.pages, options);
  if (!pages) return pages;
  if (there.pages && !there.sync) {
    auto held = (*pages)->usage();
    if (!held) return fail(std::move(held.error()));
    if (held->blocks != 0) return fail(half_error(parts, false));
  }
  auto sync = open_store(parts.sync, options);
  if (!sync) return sync;
  return join_stores(std::move(*pages), std::move(*sync));
}

Result<bool> are_both_there(const SplitUri& parts, const StoreOptions& options) {
  auto there = look(parts, options);
  if (!there) return fail(std::move(there.error()));
  if (there->sync && !there->pages) return fail(half_error(parts, true));
  if (there->sync || !there->pages) return there->sync;
  StoreOptions kept = options;
  kept.lifetime = Lifetime::kKeep;
  const auto pages = open_store(parts.pages, kept);
  if (!pages) return false;  // made with blocks of another size, or what nobody can tell
  const auto held = (*pages)->usage();
  if (held && held->blocks != 0) return fail(half_error(parts, false));
  return false;
}

}  // namespace farheap::store
