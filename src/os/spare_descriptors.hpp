// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Descriptors that are held for a moment when the program has used up all that it may have, and the runtime needs some
// all the same.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <vector>

namespace farheap::os {

class SpareDescriptors {
 public:
  // Holds as many of them as there are.
  explicit SpareDescriptors(int count);
  ~SpareDescriptors();
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

  // Whoever opens something now finds their numbers free.
  void let_go();
  // Those that were let go, as far as there are any.
  void take_again();

 private:
  const int count_;
  std::vector<int> held_;
};

}  // namespace farheap::os
