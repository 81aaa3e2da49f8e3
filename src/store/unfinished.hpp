// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mark of a kept store that somebody has begun to fill with the contents of another: block 0 says so until it gets
// what it is to hold, as the last of all. So whatever ends the work before, even a kill, leaves what open_store()
// refuses in words. The mark is docs/formats.md's, "A copy of a store that is not finished".
//
// Thread-safety: plain functions; the store's.
#pragma once

#include <farheap/store.hpp>

namespace farheap::store {

// Makes it durable. kConflict if the store holds block 0: then it is somebody else's.
[[nodiscard]] Status mark_unfinished(Store& store);

// False, too, if block 0 cannot be read: whoever needs it will be told.
[[nodiscard]] bool is_unfinished(Store& store);

// What open_store() says of one. `shown`: its URI without secrets.
[[nodiscard]] Error unfinished_error(const std::string& shown);

}  // namespace farheap::store
