// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level guard: before an access that may miss, a look whether its page is away; if so, the thread that needs it brings
// it, which takes a quarter of what a fault takes (DESIGN 4.5):
//
//   offset = address - view.begin;
//   if (offset < view.bytes && view.away[offset >> 12] != 0) __farheap_fetch(address, write);
//
//   opt -load-pass-plugin=farheap-passes-19.so -passes=farheap -farheap-level=guard -S list.ll
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/IR/PassManager.h>

#include "guard_profile.hpp"
#include "loop_ranges.hpp"
#include "report.hpp"
#include "settings.hpp"

namespace farheap::passes {

// Where guards are made: all of them if there is no profile. `evenly`: what hints speak for. Analyses of the function
// are as invalid afterwards as any change makes them. True if something was inserted.
bool guard_accesses(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Settings& settings,
                    GuardProfile* profile, const Touches& evenly, Report& report);

}  // namespace farheap::passes
