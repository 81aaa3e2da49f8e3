// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/spare_descriptors.hpp"

#include <fcntl.h>

#include "os/own_descriptors.hpp"

namespace farheap::os {

SpareDescriptors::SpareDescriptors(int count) : count_(count) {
  held_.reserve(static_cast<std::size_t>(count));
  take_again();
}

SpareDescriptors::~SpareDescriptors() { let_go(); }

void SpareDescriptors::let_go() {
  for (const int file : held_) release_descriptor(file);
  held_.clear();
}

void SpareDescriptors::take_again() {
  while (held_.size() < static_cast<std::size_t>(count_)) {
    const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    held_.push_back(keep_descriptor(file));
  }
}

}  // namespace farheap::os
