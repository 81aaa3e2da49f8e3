// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often guards were passed and found a page away: records in the program that makes a profile, and the profile
// as it is read again (docs/formats.md).
//
// Thread-safety: GuardProfile::read() may be called by any thread; the rest, one thread for a module.
#pragma once

#include <llvm/ADT/DenseMap.h>
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

// One state of a function, by its shape: there may be several, if it changed between two runs.
struct FunctionProfile {
  std::uint64_t shape = 0;
  std::size_t guards = 0;
  llvm::DenseMap<std::size_t, GuardCount> counts;  // of those that were recorded

  // Requires: ordinal < guards.
  [[nodiscard]] GuardCount of(std::size_t ordinal) const { return counts.lookup(ordinal); }
};

class GuardProfile {
 public:
  // What several runs recorded is added up. An error names the file and the line.
  [[nodiscard]] static llvm::Expected<GuardProfile> read(llvm::StringRef path);

  // The counts of a function of this shape that had so many guards; null, with the reason, if there are none.
  [[nodiscard]] const FunctionProfile* find(const llvm::Function& function, std::uint64_t shape, std::size_t guards,
                                            std::string& why);

  // Of what was looked for: what a user should know without a report; empty if all is well.
  [[nodiscard]] std::string warning() const;

 private:
  void add(llvm::StringRef name, std::uint64_t shape, std::size_t guards, std::size_t ordinal, const GuardCount& count);

  std::string path_;
  llvm::StringMap<std::vector<FunctionProfile>> functions_;
  bool has_misses_ = false;
  std::size_t asked_ = 0;
  std::vector<std::string> others_;  // the profile has functions of their names, and another shape
};

// More than once in 10^4 passes: below that the looks cost more than the faults that they avoid (DESIGN 4.5).
[[nodiscard]] bool is_worth_a_guard(const GuardCount& count);

// Of all that the function does, as it is before guards are in it: functions of two programs, of two versions of one,
// or as two sets of options leave them, have the same one only if their guards mean the same.
[[nodiscard]] std::uint64_t shape_of(const llvm::Function& function);

// The counters of a function with that many guards, {passes, misses} each. compiler/counts/guards.c writes them out.
[[nodiscard]] llvm::GlobalVariable* make_guard_counters(llvm::Function& function, std::uint64_t shape,
                                                        std::size_t guards);

// Tells compiler/counts/guards.c that this file was compiled to count, also if there is nothing in it to be counted.
void note_that_guards_count(llvm::Module& module);

}  // namespace farheap::passes
