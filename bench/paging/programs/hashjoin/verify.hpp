// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks a join against the definition of its relations, which say of each probe what its partner is.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernel.hpp"

namespace farheap::bench {

// "" or what is wrong with what each thread (which took every threads-th probe) found, or with the table.
[[nodiscard]] std::string verify_join(const Relations& relations, std::span<const Tuple> table,
                                      std::span<const Joined> found, std::uint64_t probes);

}  // namespace farheap::bench
