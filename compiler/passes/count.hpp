// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level count: how many instructions, loads and stores a function has, and, if wanted, how many it executes.
//
// What is executed is counted in a record for each function, in the section farheap_counts. counts.c, which farcc links
// to such programs, prints them when the program ends.
#pragma once

#include <llvm/IR/Function.h>

#include <cstdint>

#include "report.hpp"

namespace farheap::passes {

struct Counts {
  std::uint64_t instructions = 0, loads = 0, stores = 0;
  Counts& operator+=(const Counts& more) {
    instructions += more.instructions;
    loads += more.loads;
    stores += more.stores;
    return *this;
  }
};

// Without what is only there for the debugger.
[[nodiscard]] Counts count(const llvm::BasicBlock& block);
[[nodiscard]] Counts count(const llvm::Function& function);

// Adds the counts of each basic block to the function's record whenever it is executed.
void count_executions(llvm::Function& function);

}  // namespace farheap::passes
