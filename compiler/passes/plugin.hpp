// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass of the module, and how LLVM gets to know it.
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/PassManager.h>

#include "count.hpp"
#include "guard_profile.hpp"
#include "report.hpp"
#include "settings.hpp"

namespace farheap::passes {

class FarheapPass : public llvm::PassInfoMixin<FarheapPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  // At -O0, too: or it would be left out there without a word.
  static bool isRequired() { return true; }

 private:
  bool run_on(llvm::Function& function, llvm::ModuleAnalysisManager& analyses, const Settings& settings,
              GuardProfile* profile, Report& report);

  // Instructions of functions before variables were moved, which changes them.
  llvm::DenseMap<const llvm::Function*, Counts> before_;
  // The sums over a module, without the functions that were left out.
  struct Totals {
    std::uint64_t functions = 0;
    Counts before, after;
  };
  Totals totals_;
  void report_totals(const llvm::Module& module, const Settings& settings, Report& report) const;
};

}  // namespace farheap::passes
