// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where in the pipelines the pass runs: after all optimisations, vectorisation too. That is OptimizerLast: at -O0, at
// -O1 to -O3, before ThinLTO and full LTO (in the compiler) and after ThinLTO (in the linker); full LTO in the linker
// has a place of its own. The attribute kDone keeps the second run from what the first has seen.
#include "plugin.hpp"

#include <llvm/Passes/PassBuilder.h>
#if __has_include(<llvm/Passes/PassPlugin.h>)
#include <llvm/Passes/PassPlugin.h>
#else
#include <llvm/Plugins/PassPlugin.h>
#endif

#include <optional>
#include <string>

#include "contexts.hpp"
#include "guard_profile.hpp"
#include "guards.hpp"
#include "loop_hints.hpp"
#include "messages.hpp"
#include "target.hpp"
#include "translate.hpp"

namespace farheap::passes {
namespace {

// It runs before the program and its libraries are put together.
bool chooses_function(const llvm::Function& function) {
  return llvm::any_of(function.getParent()->ifuncs(), [&](const llvm::GlobalIFunc& one) {
    return one.getResolver()->stripPointerCasts() == &function;
  });
}

// Why nothing is to be done in this function; empty if something is.
llvm::StringRef reason_to_leave(const llvm::Function& function, const Settings& settings,
                                const llvm::StringSet<>& annotated) {
  if (function.hasFnAttribute(llvm::Attribute::Naked)) return "a naked function";
  if (annotated.contains(function.getName())) return "it says farheap_leave";
  if (!settings.wants(function)) return "by -ffar-only or -ffar-leave";
  if (settings.level == Level::kRecord && chooses_function(function)) {
    return "it chooses a function while the program is loaded (ifunc)";
  }
  if (settings.level == Level::kHint && function.hasOptNone()) {
    return "compiled without optimisation (-O0, optnone): its loops keep their counters in memory";
  }
  return {};
}

// What is available externally is emitted, and instrumented, elsewhere.
bool is_to_be_seen(const llvm::Function& function) {
  return !function.isDeclaration() && !function.hasAvailableExternallyLinkage() && !function.hasFnAttribute(kDone);
}

// Patterns that do nothing: nothing in this file is meant by them, as by one with a slip of the pen, or a lock is.
std::string in_vain(const llvm::Module& module, const Settings& settings) {
  const std::string in = " in " + module.getSourceFileName();
  if (!settings.only.empty() && llvm::none_of(module, [&](const llvm::Function& function) {
        return is_to_be_seen(function) && settings.is_only(function);
      })) {
    return "-ffar-only: no function" + in + " has a name, or is in a file, that it says: nothing is done there";
  }
  const auto lock =
      llvm::find_if(module, [&](const llvm::Function& function) { return settings.borrows_locks(function); });
  if (lock != module.end()) {
    return "-ffar-borrow: " + lock->getName().str() + "() is lent nothing, because a copy of a lock is none; " +
           "give the lock local memory, or run with FARHEAP_FAR_MODE=cached";
  }
  if (!settings.borrow.empty() &&
      llvm::none_of(module, [&](const llvm::Function& function) { return settings.may_borrow(function); })) {
    return "-ffar-borrow: no function that is called" + in + " has a name that it says";
  }
  return {};
}

// Hints, too: what advances evenly is theirs.
bool guard(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Settings& settings,
           GuardProfile* profile, Report& report) {
  Touches evenly;
  bool changed = false;
  if (function.hasOptNone()) {
    report.add(function, {}, "left", "not hinted: compiled without optimisation (-O0, optnone)");
  } else {
    changed = hint_loops(function, analyses, settings, report, &evenly);
    if (changed) analyses.invalidate(function, llvm::PreservedAnalyses::none());
  }
  return guard_accesses(function, analyses, settings, profile, evenly, report) || changed;
}

}  // namespace

llvm::PreservedAnalyses FarheapPass::run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
  llvm::Expected<Settings> read = settings();
  if (!read) {
    complain(module, read.takeError());
    return llvm::PreservedAnalyses::all();
  }
  if (read->level == Level::kNone) return llvm::PreservedAnalyses::all();
  if (const std::string why = why_no_runtime(module, *read); !why.empty()) {
    complain(module, llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", why.c_str()));
    return llvm::PreservedAnalyses::all();
  }
  Report report(read->report);
  const std::string why_left = read->level == Level::kCount ? std::string() : why_no_hints(module);
  const llvm::StringSet<> annotated = left_by_attribute(module);
  std::optional<GuardProfile> profile;
  if (read->level == Level::kGuard && !read->guards.empty() && read->guards != kRecord) {
    llvm::Expected<GuardProfile> found = GuardProfile::read(read->guards);
    if (!found) {
      complain(module, found.takeError());
      return llvm::PreservedAnalyses::all();
    }
    profile = std::move(*found);
  }
  const bool is_new = llvm::any_of(module, is_to_be_seen);
  if (is_new) warn(module, in_vain(module, *read));
  if (is_new && !why_left.empty() && read->level == Level::kGuard) warn(module, "nothing is guarded: " + why_left);
  bool changed = false;
  totals_ = {};
  if (is_new && read->level == Level::kGuard && read->guards == kRecord) {
    note_that_guards_count(module);
    changed = true;
  }
  if (read->level == Level::kTranslateHeap) {
    before_.clear();
    for (llvm::Function& function : module) {
      before_[&function] = count(function);
      if (!function.isDeclaration() && !function.hasFnAttribute(kDone) &&
          !reason_to_leave(function, *read, annotated).empty()) {
        function.addFnAttr(kLeft);
      }
    }
    if (read->globals) changed = move_globals(module, *read, report);
  }
  for (llvm::Function& function : module) {
    if (!is_to_be_seen(function)) continue;
    const llvm::StringRef why = !why_left.empty() ? why_left : reason_to_leave(function, *read, annotated);
    if (!why.empty()) {
      report.add(function, {}, "left", why);
    } else {
      changed |= run_on(function, analyses, *read, profile ? &*profile : nullptr, report);
    }
    function.addFnAttr(kDone);
  }
  if (read->level == Level::kTranslateHeap && changed) rename_in_initialisers(module);
  if (profile) warn(module, profile->warning());
  report_totals(module, *read, report);
  complain(module, report.write());
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

bool FarheapPass::run_on(llvm::Function& function, llvm::ModuleAnalysisManager& analyses, const Settings& settings,
                         GuardProfile* profile, Report& report) {
  const auto known = before_.find(&function);
  const Counts before = known == before_.end() ? count(function) : known->second;
  bool changed = settings.level == Level::kCount && settings.executed;
  ++totals_.functions;
  totals_.before += before;
  if (settings.level == Level::kCount) {
    report.add(function, {}, "counted", "",
               {{"instructions", before.instructions}, {"loads", before.loads}, {"stores", before.stores}});
    if (settings.executed) count_executions(function);
    return changed;
  }
  auto& of_functions = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(*function.getParent()).getManager();
  if (settings.level == Level::kTranslateHeap) {
    translate_heap(function, settings, report);
    changed = true;
  } else if (settings.level == Level::kRecord) {
    changed = record_contexts(function, of_functions, report);
  } else {
    changed = settings.level == Level::kGuard ? guard(function, of_functions, settings, profile, report)
                                              : hint_loops(function, of_functions, settings, report);
  }
  const Counts after = count(function);
  totals_.after += after;
  report.add(function, {}, "size", "instructions", {{"before", before.instructions}, {"after", after.instructions}});
  return changed;
}

// As figure 6.1 of seed 000 has them.
void FarheapPass::report_totals(const llvm::Module& module, const Settings& settings, Report& report) const {
  if (totals_.functions == 0) return;
  if (settings.level == Level::kCount) {
    report.add(module, "total", "",
               {{"functions", totals_.functions},
                {"instructions", totals_.before.instructions},
                {"loads", totals_.before.loads},
                {"stores", totals_.before.stores}});
  } else {
    report.add(module, "total", "instructions",
               {{"before", totals_.before.instructions},
                {"after", totals_.after.instructions},
                {"functions", totals_.functions}});
  }
}

}  // namespace farheap::passes

// The name is LLVM's.
extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  using farheap::passes::FarheapPass;
  const auto register_all = [](llvm::PassBuilder& builder) {
#if LLVM_VERSION_MAJOR >= 20
    builder.registerOptimizerLastEPCallback([](llvm::ModulePassManager& passes, llvm::OptimizationLevel,
                                               llvm::ThinOrFullLTOPhase) { passes.addPass(FarheapPass()); });
#else
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) { passes.addPass(FarheapPass()); });
#endif
    builder.registerFullLinkTimeOptimizationLastEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) { passes.addPass(FarheapPass()); });
    builder.registerPipelineParsingCallback(
        [](llvm::StringRef name, llvm::ModulePassManager& passes, llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
          if (name != "farheap") return false;
          passes.addPass(FarheapPass());
          return true;
        });
  };
  return {LLVM_PLUGIN_API_VERSION, "farheap", LLVM_VERSION_STRING, register_all};
}
