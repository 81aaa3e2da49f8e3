// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores of which a fork makes a copy: the child has all blocks as of the fork, and from then on neither sees, nor can
// reach, what the other writes.
//
// Thread-safety: one thread, from before_fork() to the other call.
#pragma once

#include <farheap/store.hpp>

namespace farheap::store {

class CopiedByFork {
 public:
  // From here on until the fork is over, calls of other threads wait. Requires: no gets are in flight.
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent(bool forked) = 0;
  virtual void after_fork_in_child() = 0;

 protected:
  ~CopiedByFork() = default;
};

// `store`, or the one behind its decorators; nullptr if parent and child would share that one, or the child cannot have
// it.
[[nodiscard]] CopiedByFork* copied_by_fork(Store& store);

}  // namespace farheap::store
