// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mode cached: the program's heap is the paged one of `farheap run`, whose pages lie at addresses of their own. No
// address is far, every access takes its near way, and what was not translated is served by faults.
//
// That heap comes with the preload library, which has to be there before anything is allocated: where it is not, the
// program is executed anew with it, by the constructor of this library, before main() has begun.
//
// Thread-safety: any thread, once the constructor has run.
#pragma once

#include <farheap/result.hpp>

namespace farheap::translate {

// False in mode direct. Ends the program with a message if the environment names no mode.
[[nodiscard]] bool is_cached();
// Requires: is_cached().
[[nodiscard]] Status flush_pages();

}  // namespace farheap::translate
