// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// To sleep until a word changes, by the kernel's clock (base/clock.hpp).
//
// Thread-safety: any thread; of any process that shares the word, with Reach::kShared. errno stays: free() must not
// change it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace farheap::base {

enum class Reach { kProcess, kShared };

// Returns when it is woken, when the moment has come, or for no reason; at once if the word has another value.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, Reach reach = Reach::kProcess) noexcept;
void futex_wait_until(const std::atomic<std::uint32_t>& word, std::uint32_t value, Clock::time_point moment,
                      Reach reach = Reach::kProcess) noexcept;
void futex_wake(const std::atomic<std::uint32_t>& word, int most, Reach reach = Reach::kProcess) noexcept;

}  // namespace farheap::base
