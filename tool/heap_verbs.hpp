// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The verbs of `farheap heap` that have a file of their own.
//
// Thread-safety: the tool has one thread.
#pragma once

#include "verbs.hpp"

namespace farheap::tool {

int heap_list(const HeapArguments& arguments);
int heap_show(const HeapArguments& arguments);
int heap_diff(const HeapArguments& arguments);
int heap_export(const HeapArguments& arguments);

}  // namespace farheap::tool
