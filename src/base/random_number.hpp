// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A number that nobody else has: for identities, not for secrets.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <random>

namespace farheap::base {

[[nodiscard]] inline std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace farheap::base
