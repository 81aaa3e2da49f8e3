// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/inside_runtime.hpp"

namespace farheap::base {

thread_local bool t_inside_runtime = false;

}  // namespace farheap::base
