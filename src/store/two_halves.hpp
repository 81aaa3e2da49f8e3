// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "pages=URI,sync=URI" of which only one is there. `pages` is made first and removed last, so `pages` alone is what was
// just begun, or left by a removal that was broken off, or has lost its `sync`; and `sync` alone has lost its pages.
//
// Thread-safety: as open_store().
#pragma once

#include <farheap/store.hpp>

#include "store/kinds.hpp"

namespace farheap::store {

// Both, made where neither is. Kept: kCorrupt, with what is lost and what to do, where one is missing and the other
// holds something.
[[nodiscard]] StoreResult open_two(const SplitUri& parts, const StoreOptions& options);

// kCorrupt, in the same words. False if there is neither, or nothing but an empty `pages`.
[[nodiscard]] Result<bool> are_both_there(const SplitUri& parts, const StoreOptions& options);

}  // namespace farheap::store
