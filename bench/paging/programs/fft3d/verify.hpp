// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "kernel.hpp"

namespace farheap::bench {

// "" or what is wrong: after `steps`, every wave has to be damped as the heat equation says, in every point.
[[nodiscard]] std::string verify_waves(HeatBox& box, std::uint64_t seed, std::uint64_t steps);

}  // namespace farheap::bench
