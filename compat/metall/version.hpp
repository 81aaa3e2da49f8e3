// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The version of Metall whose interface this is.
#pragma once

#include <cstdint>
#include <string>

#define METALL_VERSION 3000  // 0.30.0: major * 100000 + minor * 100 + patch

namespace metall {

using version_type = std::uint32_t;

inline std::string to_version_string(version_type version) {
  return std::to_string(version / 100000) + "." + std::to_string(version / 100 % 1000) + "." +
         std::to_string(version % 100);
}

}  // namespace metall
