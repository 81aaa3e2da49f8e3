// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long a thread has been ready to run while no processor took it: the kernel's own count (schedstat). It grows
// where processors are wanted by more than there are, whether by this program, others, or a control group's quota.
//
// Thread-safety: any thread. Nothing is allocated; some microseconds.
#pragma once

#include <cstdint>
#include <optional>

namespace farheap::os {

// Nanoseconds since the thread began. Nothing if there is no such thread in this process, or the kernel does not count.
[[nodiscard]] std::optional<std::int64_t> run_delay_ns(std::uint32_t thread);

}  // namespace farheap::os
