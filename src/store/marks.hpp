// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What block 0 of a kept store says where it is no root of a heap. Nothing opens a store with such a mark alone, so
// what is no whole store is not taken for one. The marks are docs/formats.md's, "Marks in block 0".
//
//   a copy that is not finished   until block 0 gets what it is to hold, as the last of all. So whatever ends the work
//                                 before, even a kill, leaves what open_store() refuses in words
//   the pages= of two             of "pages=URI,sync=URI" (split_store.hpp): the roots are in the other one, and a heap
//                                 that were made here would write over what they point to
//
// Thread-safety: plain functions; the store's.
#pragma once

#include <farheap/store.hpp>
#include <optional>

namespace farheap::store {

enum class Mark { kUnfinishedCopy, kPagesOfTwo };

// Makes it durable. kConflict if the store holds block 0: then it is somebody else's.
[[nodiscard]] Status put_mark(Store& store, Mark mark, const char* what);

// None, too, if block 0 cannot be read: whoever needs it will be told.
[[nodiscard]] std::optional<Mark> mark_of(Store& store);

// What open_store() says of one. `shown`: its URI without secrets.
[[nodiscard]] Error mark_error(Mark mark, const std::string& shown);

}  // namespace farheap::store
