// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stacks that a thread is on: the one that it began on, and the one that it is on now (of a signal handler, or of a
// coroutine). Registers that calls keep are among their words.
//
// Thread-safety: each thread its own. For signal handlers too: takes little of the stack, and allocates nothing.
#pragma once

#include "tree.hpp"

namespace farheap::contexts {

class OwnStacks final : public LiveWords {
 public:
  // `home`: an address on the stack that the thread began on.
  explicit OwnStacks(const void* home) : home_(home) {}
  [[nodiscard]] bool read(Take& to) override;

 private:
  [[nodiscard]] bool read_from(const void* here, Take& to) const;

  const void* home_;
};

}  // namespace farheap::contexts
