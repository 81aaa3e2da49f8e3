// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// "pages=URI,sync=URI": one store of two. What several must agree on is in `sync`, which may be small and slow and lose
// nothing; the bytes are in `pages`, which may be fast.
//
//   sync    blocks 0 and 1 (a heap's roots), blocks from 2^60 on (who has it open), counters
//   pages   all other blocks, under their own numbers, and a mark in block 0 where it is kept; in `sync` a lease's is
//   its number - 2^60 + 2
//
// Each part keeps the promises of its engine; of the whole is promised what both promise, or what concerns `sync` alone
// (counters). Not even two atomic batches are one: kAtomicBatch is never set.
//
// Order. A root must not be there before what it points to: the pages of a batch are written before its blocks of
// `sync`, which are not written at all if one of the pages failed; and put() of a root makes `pages` durable first, if
// it can. sync() does the same: first `pages`, then `sync`.
//
// Thread-safety: as Store.
#pragma once

#include <farheap/store.hpp>
#include <memory>

#include "store/kinds.hpp"
#include "store/uri.hpp"

namespace farheap::store {

// kInvalidArgument if their blocks are of different sizes. `is_marked`: block 0 of `pages` says what it is (marks.hpp).
[[nodiscard]] StoreResult join_stores(std::unique_ptr<Store> pages, std::unique_ptr<Store> sync,
                                      bool is_marked = false);

// A part that is not named, or is itself of two.
[[nodiscard]] Status check_split(const SplitUri& uri);

}  // namespace farheap::store
