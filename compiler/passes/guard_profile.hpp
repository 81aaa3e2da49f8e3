// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often guards were passed and found a page away: records in the program that makes a profile, and the profile
// as it is read again (docs/formats.md).
//
// Thread-safety: read_profile() may be called by any thread; the rest, one thread for a module.
#pragma once

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/Support/Error.h>

#include <cstdint>
#include <string>
#include <vector>

namespace farheap::passes {

struct GuardCount {
  std::uint64_t passes = 0, misses = 0;
};

// One number of guards is one state of a function's source: there may be several, if it changed between two runs.
using FunctionProfile = std::vector<GuardCount>;

class GuardProfile {
 public:
  // What several runs recorded is added up. An error names the file and the line.
  [[nodiscard]] static llvm::Expected<GuardProfile> read(llvm::StringRef path);

  // The counts of a function that had so many guards; null, with the reason, if there are none.
  [[nodiscard]] const FunctionProfile* find(const llvm::Function& function, std::size_t guards, std::string& why) const;

 private:
  llvm::StringMap<std::vector<FunctionProfile>> functions_;
};

// More than once in 10^4 passes: below that the looks cost more than the faults that they avoid (DESIGN 4.5).
[[nodiscard]] bool is_worth_a_guard(const GuardCount& count);

// The counters of a function with that many guards, {passes, misses} each. compiler/counts/guards.c writes them out.
[[nodiscard]] llvm::GlobalVariable* make_guard_counters(llvm::Function& function, std::size_t guards);

}  // namespace farheap::passes
