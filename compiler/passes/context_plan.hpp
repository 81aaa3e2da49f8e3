// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What level record counts in a function: its contexts, and how often each of its accesses is made, as sums that are
// added at few places. Loops are put into LLVM's simplified form for it; nothing else is changed.
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PassManager.h>

#include <cstdint>
#include <string>
#include <vector>

namespace farheap::passes {

// Loops of one place in one context are one, as the copies that a vectorised loop has.
struct LoopContext {
  std::string function;  // that it was written in
  std::string file;
  unsigned line = 0;
  unsigned parent = 0;  // a context of the function; 0: the function itself
  bool is_quiet = false;
};

// Accesses through one pointer, each time that a sum is added.
struct ObjectUse {
  llvm::Value* pointer = nullptr;
  unsigned slot = 0;
  std::uint64_t reads = 0, writes = 0;
};

struct Weight {
  unsigned context = 0;
  std::uint64_t entries = 0, reads = 0, writes = 0;
};

// Code that is executed equally often.
struct Sum {
  llvm::Instruction* at = nullptr;           // it is added, or counted, before this
  llvm::Value* times = nullptr;              // so often; nullptr: once
  const llvm::Loop* counts_turns = nullptr;  // it is executed in each turn of this loop, whose number is known before
  std::vector<Weight> weights;
  std::vector<ObjectUse> uses;
};

// A quiet loop that is in no other: what is in it is counted in registers.
struct QuietNest {
  llvm::Loop* loop = nullptr;
  std::vector<Sum> sums;
  // Where pointers that change in the loop are used: the last one stands for all.
  struct Used {
    unsigned slot;
    llvm::Value* pointer;
    llvm::Instruction* at;
  };
  std::vector<Used> used;
};

// A loop that is a context, by itself.
struct CountedLoop {
  llvm::Loop* loop = nullptr;
  unsigned context = 0;
  int nest = -1;  // of QuietNest; -1: it is not quiet
};

struct ContextPlan {
  std::vector<LoopContext> loops;    // context i + 1
  std::vector<CountedLoop> counted;  // outer loops before inner ones
  std::vector<QuietNest> nests;
  std::vector<Sum> sums;                                       // outside of quiet nests
  std::vector<llvm::CallBase*> calls;                          // that may lead to another context
  std::vector<unsigned> slot_contexts;                         // whose context each slot is
  llvm::DenseMap<const llvm::BasicBlock*, unsigned> contexts;  // of a block; 0 if it is not in it
  bool is_quiet = false;                                       // the whole function calls nobody
};

[[nodiscard]] ContextPlan plan_contexts(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace farheap::passes
