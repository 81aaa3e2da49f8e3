// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store that a heap lives in: the one place that opens it, so that tests can put one there that fails, records, or
// is what a failure has left.
//
// Thread-safety: open_heap_store() by any thread; the opener is set while no heap is opened.
#pragma once

#include <farheap/store.hpp>
#include <functional>
#include <memory>

#include "api/heap_place.hpp"

namespace farheap::api {

using HeapStoreOpener = std::function<Result<std::unique_ptr<Store>>(const HeapPlace&)>;

// By open_store(), or by the opener that was set.
[[nodiscard]] Result<std::unique_ptr<Store>> open_heap_store(const HeapPlace& place, bool read_only = false);

// is_store_there() and remove_store(), or what the opener's stores have.
[[nodiscard]] Result<bool> is_heap_store_there(const HeapPlace& place);
[[nodiscard]] Status remove_heap_store(const HeapPlace& place);

// For tests. An empty one: as if it had never been set.
void set_heap_store_opener(HeapStoreOpener opener);

}  // namespace farheap::api
