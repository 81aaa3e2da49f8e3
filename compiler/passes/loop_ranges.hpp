// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which bytes a loop will touch, as far as that is known when it is entered. Analysis only: nothing is changed.
//
// A load or store walks evenly if its address is {base,+,stride} and the number of turns is known before the first one.
// Its range is then followed outwards, from loop to loop, as long as that remains true, so that a short inner loop is
// spoken for by the loop around it. What is found is a guess about the future in one respect: arithmetic that would
// wrap around is taken not to. So a range may be wrong, and nothing but a hint may follow from it.
//
// Thread-safety: one thread for a function.
#pragma once

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "settings.hpp"

namespace farheap::passes {

// As in farheap/loop_hint.h.
enum Direction : unsigned { kReads = 1, kWrites = 2, kBackward = 4 };

// An instruction and the pointer that it goes by: a copy goes by two.
using Touch = std::pair<const llvm::Instruction*, const llvm::Value*>;
using Touches = llvm::DenseSet<Touch>;

// The bytes [base + low, base + high), known before `loop` is entered. In bytes, as 64-bit numbers with sign.
struct LoopRange {
  llvm::Loop* loop = nullptr;
  const llvm::SCEV* base = nullptr;
  const llvm::SCEV* low = nullptr;
  const llvm::SCEV* high = nullptr;
  const llvm::SCEV* stride = nullptr;  // from one turn of the innermost loop to the next; null: it differs
  unsigned flags = 0;                  // of Direction
  unsigned accesses = 0;
  llvm::SmallVector<Touch, 1> evenly;  // those of them that advance by less than a page
};

// An access that no range speaks for, and why.
struct LeftOut {
  const llvm::Instruction* access;
  std::string why;
};

struct LoopRanges {
  std::vector<LoopRange> ranges;
  std::vector<LeftOut> left;
};

// Whether the range can be computed before its loop is entered; if not, why.
using CanCompute = llvm::function_ref<bool(const LoopRange& range, std::string& why)>;

// Ranges that are known to be shorter than the threshold, or not in the heap, are left out. A range is followed
// outwards as long as it can be computed there.
[[nodiscard]] LoopRanges find_loop_ranges(llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution,
                                          const Settings& settings, CanCompute can_compute);

}  // namespace farheap::passes
