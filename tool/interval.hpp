// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times between two samples, as options have them: seconds.
//
// Thread-safety: a pure function.
#pragma once

#include <fmt/format.h>

#include <farheap/result.hpp>

namespace farheap::tool {

[[nodiscard]] inline Status check_interval(const char* option, double seconds) {
  constexpr double kLeast = 0.001;
  constexpr double kMost = 86400;
  if (seconds >= kLeast && seconds <= kMost) return {};
  return fail(ErrorCode::kInvalidArgument, "the interval cannot be kept", fmt::format("{} {}", option, seconds),
              fmt::format("it is from {} to {} seconds", kLeast, kMost), fmt::format("use {} 0.1", option));
}

}  // namespace farheap::tool
