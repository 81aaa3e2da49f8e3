// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hears of what a program allocates and gives back, with where it does so: a recorder of profiles, or a plan.
//
// Thread-safety: threads of the program call it, several at once. It touches nothing that is paged but their stack.
#pragma once

#include <cstddef>

namespace farheap::profile {

class AllocationObserver {
 public:
  AllocationObserver() = default;
  AllocationObserver(const AllocationObserver&) = delete;
  AllocationObserver& operator=(const AllocationObserver&) = delete;
  virtual ~AllocationObserver() = default;

  // What an allocation answered; nullptr and what lies outside of the heap are passed by. `caller` and `frame` as
  // CallSites::site_of has them.
  virtual void allocated(const void* object, std::size_t bytes, const void* caller, const void* frame) = 0;
  // Before it is given back. `object`: as it was answered.
  virtual void freed(const void* object) = 0;
  // Before it is unmapped, whatever part of objects it is.
  virtual void unmapped(const void* at, std::size_t bytes) = 0;
};

}  // namespace farheap::profile
