// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which accesses of a function get a guard, and where its looks are taken. Analysis only: nothing is changed.
//
// An access gets none if it certainly is not in the heap, or if a hint speaks for it. Of several accesses within
// kTogether bytes of each other, the first speaks for those that can be reached only by way of it and without a call
// in between that may take long: after that the page may have gone again. Loops and copies in between are taken to be
// short enough. What does not change in a loop without such calls is looked at before it; what advances evenly by less
// than a page is looked at before the loop, and then where it enters another page.
//
// Thread-safety: one thread for a function.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>

#include <cstdint>
#include <vector>

#include "loop_ranges.hpp"

namespace farheap::passes {

inline constexpr std::int64_t kPageBytes = 4096;
inline constexpr std::int64_t kTogether = 512;  // an object's fields; what of it lies on the next page faults

// One look whether a page is away.
struct Look {
  llvm::Instruction* before;
  llvm::Value* pointer;       // null: the address has to be computed
  const llvm::SCEV* address;  // of `pointer`, or of what is to be computed
  std::int64_t ahead = 0;     // bytes that the look is taken from there
  std::int64_t step = 0;      // bytes from one turn to the next, less than a page: where a page is entered. 0: always
  llvm::Loop* around = nullptr;  // the outermost loop around it in which nothing takes long; the view is read before it
};

struct Guard {
  llvm::Instruction* access;  // the first that it is for
  std::vector<Look> looks;
  unsigned accesses = 1;  // that it is for
  bool writes = false;
  bool hoisted = false;  // out of a loop
  bool chunked = false;  // only where another page is entered
};

struct Guards {
  std::vector<Guard> guards;  // in an order that depends on nothing but the function
  std::vector<LeftOut> left;
};

// Whether the address can be computed before the loop, safely and cheaply.
using CanComputeBefore = llvm::function_ref<bool(const llvm::SCEV* address, llvm::Loop& loop)>;

// `evenly`: what hints speak for.
[[nodiscard]] Guards find_guards(llvm::Function& function, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
                                 llvm::ScalarEvolution& evolution, const Touches& evenly, CanComputeBefore can_compute);

}  // namespace farheap::passes
