// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who called a function that a library has in the place of another one.
//
// Thread-safety: a value.
#pragma once

namespace farheap::preload {

// Who called the function that says FARHEAP_CALLER, as call sites want it. (__builtin_frame_address() would
// make it keep a frame pointer.)
struct Caller {
  const void* address;
  const void* frame;
};
#define FARHEAP_CALLER                                                                         \
  ::farheap::preload::Caller {                                                                 \
    __builtin_return_address(0), static_cast<char*>(__builtin_dwarf_cfa()) - 2 * sizeof(void*) \
  }

}  // namespace farheap::preload
