// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One store with several handles, as a server has.
//
// Thread-safety: as Store.
#pragma once

#include <memory>

#include "store/decorator.hpp"

namespace farheap::testing {

// Passes everything on to a store that outlives it.
class SharedStore final : public store::Decorator {
 public:
  explicit SharedStore(Store& below) : Decorator("shared", std::unique_ptr<Store>(&below)) {}
  ~SharedStore() override { (void)inner_.release(); }
};

}  // namespace farheap::testing
