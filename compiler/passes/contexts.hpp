// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level record: the program counts along its context tree (seed 001): a context is a function or loop, reached by one
// call path. A function that is entered finds its context below that of the caller, and with it those of all of its
// loops, which lie behind it in one block of memory (compiler/contexts/nodes.hpp):
//
//   me = current->cached_place == &place ? current->cached_child : __farheap_context_enter(&place);
//
//   where a context is told   before each call that may lead to another function: `current` is stored there. So it is
//                             right after exceptions, longjmp() and tail calls, which nothing has to be done about
//   accesses                  added to the context where straight code ends. In loops without calls (*quiet* ones) they
//                             are counted in registers, by the number of turns where that is known, and added once,
//                             where the outermost quiet loop is left
//   allocation sites          by the pointer that the addresses are computed from, looked up there, too
//   time                      quiet functions and loops: some of their visits are timed, each stands for those since
//   the
//                             one before. Others: the clock is read where they begin and end
//
//   opt -load-pass-plugin=farheap-passes-19.so -passes=farheap -farheap-level=record -S list.ll
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/IR/PassManager.h>

#include "report.hpp"

namespace farheap::passes {

// Analyses of the function are as invalid afterwards as any change makes them. True: it always changes something.
bool record_contexts(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, Report& report);

}  // namespace farheap::passes
