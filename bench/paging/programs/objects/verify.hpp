// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "kernel.hpp"

namespace farheap::bench {

// "" or what is wrong: with the sum of a walk, which is computed without any node, or with a node that is left.
[[nodiscard]] std::string verify_objects(Objects& objects, std::uint64_t walks);

}  // namespace farheap::bench
