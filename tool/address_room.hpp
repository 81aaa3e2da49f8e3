// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a process of a run can have the addresses that it reserves. They are no memory, but two settings count them:
// RLIMIT_AS (`ulimit -v`) and vm.overcommit_memory=2, where the kernel does not heed MAP_NORESERVE.
//
// Thread-safety: the tool has one thread.
#pragma once

#include <cstdint>
#include <farheap/result.hpp>
#include <string_view>

#include "os/kernel_features.hpp"

namespace farheap::tool {

// Of one process; some stores map a part of theirs as well.
[[nodiscard]] std::uint64_t addresses_needed(std::string_view store_uri);

// RLIMIT_AS. kNoSpace with the command that mends it.
[[nodiscard]] Status check_address_limit(const os::MachineLimits& limits, std::uint64_t needed);

// The overcommit setting. `grants_reservation`: what try_to_reserve() found.
[[nodiscard]] Status check_overcommit_mode(const os::MachineLimits& limits, bool grants_reservation);
[[nodiscard]] bool try_to_reserve(std::uint64_t bytes);

// Both, of this machine and this process.
[[nodiscard]] Status check_addresses(std::string_view store_uri);

}  // namespace farheap::tool
