// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <mutex>

namespace metall::utility::mutex {

// Locks one of kBanks mutexes of this process: locks for data in a store, where no mutex can be kept. All users of the
// same kBanks share them. Requires: index < kBanks.
template <int kBanks>
inline std::unique_lock<std::mutex> mutex_lock(std::size_t index) {
  static std::array<std::mutex, kBanks> banks;
  assert(index < banks.size());
  return std::unique_lock<std::mutex>(banks[index]);
}

}  // namespace metall::utility::mutex
