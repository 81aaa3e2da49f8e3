// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heaps of this test live in stores that the test makes. The URI still names a file: locks are kept beside it.
#pragma once

#include <fstream>
#include <string>
#include <utility>

#include "api/heap_store.hpp"
#include "store/decorator.hpp"
#include "tests/store/shared_store.hpp"

namespace farheap::testing {

// While it lives, every heap that is opened gets its store from `opener`.
class HeapsOn {
 public:
  explicit HeapsOn(api::HeapStoreOpener opener) { api::set_heap_store_opener(std::move(opener)); }
  ~HeapsOn() { api::set_heap_store_opener({}); }
  HeapsOn(const HeapsOn&) = delete;
  HeapsOn& operator=(const HeapsOn&) = delete;
};

// So that something is there to be opened.
inline void touch(const std::string& file) { std::ofstream(file) << ""; }

}  // namespace farheap::testing
