// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/heap_store.hpp"

namespace farheap::api {
namespace {

HeapStoreOpener& opener_of_tests() {
  static HeapStoreOpener opener;
  return opener;
}

}  // namespace

Result<std::unique_ptr<Store>> open_heap_store(const HeapPlace& place, bool read_only) {
  if (const HeapStoreOpener& opener = opener_of_tests()) return opener(place);
  std::string uri = place.uri;
  if (read_only && place.is_file_store()) uri += (uri.find('?') == uri.npos ? "?" : "&") + std::string("read_only=yes");
  return open_store(uri, {.lifetime = Lifetime::kKeep});
}

// A store that an opener of tests has made is there as soon as it holds a block.
Result<bool> is_heap_store_there(const HeapPlace& place) {
  const HeapStoreOpener& opener = opener_of_tests();
  if (!opener) return is_store_there(place.uri);
  if (!place.is_on_server()) return true;  // its files are not what the opener looks at
  auto store = opener(place);
  if (!store) return fail(std::move(store.error()));
  auto usage = (*store)->usage();
  if (!usage) return fail(std::move(usage.error()));
  return usage->blocks != 0;
}

Status remove_heap_store(const HeapPlace& place) {
  const HeapStoreOpener& opener = opener_of_tests();
  if (!opener) return remove_store(place.uri);
  auto store = opener(place);
  if (!store) return fail(std::move(store.error()));
  return (*store)->erase(0, UINT64_MAX);
}

void set_heap_store_opener(HeapStoreOpener opener) { opener_of_tests() = std::move(opener); }

}  // namespace farheap::api
