// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/environment.hpp"

#include <cstdlib>

#include <sys/auxv.h>
#include <unistd.h>

namespace farheap::base {

bool has_raised_rights() { return getauxval(AT_SECURE) != 0; }

const char* environment(const char* name) { return has_raised_rights() ? nullptr : std::getenv(name); }

const char* const* environment_lines() {
  static constexpr char* kNone[] = {nullptr};
  return environ == nullptr || has_raised_rights() ? kNone : environ;
}

}  // namespace farheap::base
