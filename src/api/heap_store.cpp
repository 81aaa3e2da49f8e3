// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/heap_store.hpp"

namespace farheap::api {
namespace {

HeapStoreOpener& opener_of_tests() {
  static HeapStoreOpener opener;
  return opener;
}

}  // namespace

Result<std::unique_ptr<Store>> open_heap_store(const HeapPlace& place) {
  if (const HeapStoreOpener& opener = opener_of_tests()) return opener(place);
  return open_store(place.uri, {.lifetime = Lifetime::kKeep});
}

void set_heap_store_opener(HeapStoreOpener opener) { opener_of_tests() = std::move(opener); }

}  // namespace farheap::api
