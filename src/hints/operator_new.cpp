// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All forms of operator new; what they give is given back by free().
#include "preload/operator_new.hpp"

#include "hints/next_malloc.hpp"

// NOLINTBEGIN(bugprone-macro-parentheses): a name, and a list of parameters
#define FARHEAP_NEW(name, mangled, parameters, call) \
  __attribute__((visibility("default"))) void* name parameters { return call; }
// NOLINTEND(bugprone-macro-parentheses)

using WithHints = farheap::preload::OperatorNew<farheap::hints::allocate_for, farheap::hints::allocate_aligned_for>;

FARHEAP_FORMS_OF_NEW(FARHEAP_NEW, WithHints)
