// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the programs of allocator_guests.cpp tell their allocator.
#pragma once

namespace own {

// The calling thread is one of the program's own; nobody else may allocate (own_allocator.cpp).
void of_the_program();

}  // namespace own
