// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With a library's allocator linked in statically nothing has to be told.
#include "own_allocator.hpp"

void own::of_the_program() {}
