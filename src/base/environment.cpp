// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/environment.hpp"

#include <cstdlib>

#include <sys/auxv.h>
#include <unistd.h>

namespace farheap::base {

const char* environment(const char* name) { return getauxval(AT_SECURE) == 0 ? std::getenv(name) : nullptr; }

const char* const* environment_lines() {
  static constexpr char* kNone[] = {nullptr};
  return environ != nullptr && getauxval(AT_SECURE) == 0 ? environ : kNone;
}

}  // namespace farheap::base
