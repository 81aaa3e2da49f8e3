// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level hint: before a loop, the runtime is told what the loop will touch.
//
//   if (&__farheap_loop != nullptr && bytes >= threshold) __farheap_loop(begin, bytes, stride, flags);
//
// The function is weak: without the runtime the program is as it was, but for the comparison.
//
//   opt -load-pass-plugin=farheap-passes-19.so -passes=farheap -farheap-level=hint -S saxpy.ll
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/IR/PassManager.h>

#include "loop_ranges.hpp"
#include "report.hpp"
#include "settings.hpp"

namespace farheap::passes {

// Analyses of the function are as invalid afterwards as any change makes them. True if something was inserted.
// `evenly`, if it is there, gets what was hinted and advances by less than a page.
bool hint_loops(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Settings& settings,
                Report& report, Touches* evenly = nullptr);

}  // namespace farheap::passes
