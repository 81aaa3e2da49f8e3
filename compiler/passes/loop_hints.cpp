// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing that is computed for a hint may change the program: the arithmetic is expanded only where it can neither
// divide by zero nor read memory, and what may be poison is frozen before it is compared.
#include "loop_hints.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/DomTreeUpdater.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <map>

namespace farheap::passes {
namespace {

using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

constexpr unsigned kMostRanges = 8;         // before one loop; more would be a program of its own
constexpr unsigned kMostInstructions = 48;  // to compute one range, by the measure of LLVM's expander

struct Hint {
  LoopRange range;
  Value* begin;
  Value* bytes;
  Value* stride;
};

llvm::FunctionCallee hook(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                       {pointer, word, word, llvm::Type::getInt32Ty(context)}, false);
  llvm::FunctionCallee callee = module.getOrInsertFunction("__farheap_loop", type);
  auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee());
  if (function == nullptr || !function->isDeclaration() || function->hasExternalWeakLinkage()) return callee;
  function->setLinkage(llvm::GlobalValue::ExternalWeakLinkage);
  function->setDoesNotThrow();
  // It neither reads nor writes what the program can see, so that it stands in the way of no optimisation.
  function->setOnlyAccessesInaccessibleMemory();
  function->addFnAttr(llvm::Attribute::WillReturn);
  function->addFnAttr(llvm::Attribute::Cold);
  return callee;
}

llvm::DebugLoc place_of(const Loop& loop, const llvm::Function& function) {
  if (llvm::DebugLoc start = loop.getStartLoc()) return start;
  llvm::DISubprogram* known = function.getSubprogram();
  if (known == nullptr) return {};
  return llvm::DILocation::get(function.getContext(), 0, 0, known);
}

// Loops that later passes have left without a block of their own before them get one.
llvm::SmallVector<llvm::BasicBlock*> make_preheaders(llvm::LoopInfo& loops, llvm::DominatorTree& dominators) {
  llvm::SmallVector<llvm::BasicBlock*> made;
  for (Loop* loop : loops.getLoopsInPreorder()) {
    if (loop->getLoopPreheader() != nullptr) continue;
    if (auto* block = llvm::InsertPreheaderForLoop(loop, &dominators, &loops, nullptr, false)) made.push_back(block);
  }
  return made;
}

// Those in which nothing was said go again: the function is what it was.
void remove_unused(llvm::ArrayRef<llvm::BasicBlock*> made) {
  for (llvm::BasicBlock* block : made) {
    auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    const bool is_bare = branch != nullptr && branch->isUnconditional() && &*block->getFirstNonPHIOrDbg() == branch;
    if (is_bare) llvm::TryToSimplifyUncondBranchFromEmptyBlock(block);
  }
}

class Inserter {
 public:
  Inserter(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Settings& settings, Report& report,
           Touches* evenly)
      : function_(function),
        settings_(settings),
        report_(report),
        evenly_(evenly),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        costs_(analyses.getResult<llvm::TargetIRAnalysis>(function)),
#if LLVM_VERSION_MAJOR >= 22
        expander_(evolution_, "farheap") {
  }
#else
        expander_(evolution_, function.getParent()->getDataLayout(), "farheap") {
  }
#endif

  bool run() {
    const LoopRanges found =
        find_loop_ranges(loops_, evolution_, settings_,
                         [&](const LoopRange& range, std::string& why) { return can_compute(range, why); });
    report_left(found.left);
    llvm::MapVector<Loop*, std::vector<Hint>> hints;
    // All is computed before the first branch is inserted: that splits the blocks.
    for (const LoopRange& range : found.ranges) compute(range, hints[range.loop]);
    bool changed = false;
    for (const auto& [loop, of_loop] : hints) changed |= insert(*loop, of_loop);
    // Not earlier: the expander may have used one loop's instructions for another one.
    for (llvm::BasicBlock* block : said_in_) sink_into(*block);
    return changed;
  }

 private:
  // One line for all accesses of a source line that are left out for one reason: unrolling makes many of one.
  void report_left(const std::vector<LeftOut>& all) {
    if (!report_.is_wanted()) return;
    using Line = std::pair<unsigned, std::string>;
    llvm::MapVector<Line, std::pair<llvm::DebugLoc, std::uint64_t>, std::map<Line, unsigned>> lines;
    for (const LeftOut& left : all) {
      const llvm::DebugLoc& where = left.access->getDebugLoc();
      const llvm::StringRef kind = llvm::isa<llvm::CallBase>(left.access) ? "call" : left.access->getOpcodeName();
      auto& [place, number] = lines[{where ? where.getLine() : 0, (kind + ": " + left.why).str()}];
      place = where;
      ++number;
    }
    for (const auto& [line, found] : lines)
      report_.add(function_, found.first, "left", line.second, {{"accesses", found.second}});
  }

  void leave(const Loop& loop, const llvm::Twine& why) {
    if (report_.is_wanted()) report_.add(function_, loop.getStartLoc(), "left", why.str());
  }

  static llvm::Instruction* before_of(const LoopRange& range) {
    return range.loop->getLoopPreheader()->getTerminator();
  }
  const SCEV* begin_of(const LoopRange& range) { return evolution_.getAddExpr(range.base, range.low); }
  const SCEV* bytes_of(const LoopRange& range) { return evolution_.getMinusSCEV(range.high, range.low); }

  bool can_compute(const LoopRange& range, std::string& why) {
    llvm::Instruction* before = before_of(range);
    const SCEV* begin = begin_of(range);
    const SCEV* bytes = bytes_of(range);
    if (!expander_.isSafeToExpandAt(begin, before) || !expander_.isSafeToExpandAt(bytes, before)) {
      why = "what it touches cannot be computed before the loop without a danger";
    } else if (expander_.isHighCostExpansion({begin, bytes}, range.loop, kMostInstructions, &costs_, before)) {
      why = "what it touches takes too much to compute before the loop";
    } else {
      return true;
    }
    return false;
  }

  void compute(const LoopRange& range, std::vector<Hint>& hints) {
    if (hints.size() == kMostRanges) {
      leave(*range.loop, "a range more than are hinted before one loop (" + llvm::Twine(kMostRanges) + ")");
      return;
    }
    if (std::string why; !can_compute(range, why)) {
      leave(*range.loop, "ranges that were merged: " + why);
      return;
    }
    llvm::Instruction* before = before_of(range);
    const SCEV* begin = begin_of(range);
    const SCEV* bytes = bytes_of(range);
    llvm::IRBuilder<> at(before);
    at.SetCurrentDebugLocation(place_of(*range.loop, function_));
    hints.push_back({range,
                     at.CreateFreeze(expander_.expandCodeFor(begin, range.base->getType(), before->getIterator())),
                     at.CreateFreeze(expander_.expandCodeFor(bytes, at.getInt64Ty(), before->getIterator())),
                     stride_of(range, before)});
  }

  Value* stride_of(const LoopRange& range, llvm::Instruction* before) {
    llvm::Type* word = llvm::Type::getInt64Ty(function_.getContext());
    const bool known = range.stride != nullptr && range.stride->getType() == word &&
                       expander_.isSafeToExpandAt(range.stride, before) &&
                       !expander_.isHighCostExpansion({range.stride}, range.loop, kMostInstructions, &costs_, before);
    if (!known) return llvm::ConstantInt::get(word, 0);
    return expander_.expandCodeFor(range.stride, word, before->getIterator());
  }

  // One branch for all ranges of a loop: the runtime looks at what is too short once more.
  bool insert(Loop& loop, const std::vector<Hint>& hints) {
    if (hints.empty()) return false;
    llvm::Instruction* before = loop.getLoopPreheader()->getTerminator();
    llvm::FunctionCallee callee = hook(*function_.getParent());
    const llvm::DebugLoc place = place_of(loop, function_);
    llvm::IRBuilder<> at(before);
    at.SetCurrentDebugLocation(place);
    Value* longest = nullptr;
    for (const Hint& hint : hints) {
      Value* is_long = at.CreateICmpUGE(hint.bytes, at.getInt64(settings_.threshold));
      longest = longest == nullptr ? is_long : at.CreateOr(longest, is_long);
    }
    Value* there = at.CreateIsNotNull(callee.getCallee());
    llvm::DomTreeUpdater updater(dominators_, llvm::DomTreeUpdater::UpdateStrategy::Eager);
    llvm::MDNode* seldom = llvm::MDBuilder(function_.getContext()).createUnlikelyBranchWeights();
    at.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(at.CreateAnd(there, longest), before->getIterator(), false,
                                                      seldom, &updater, &loops_));
    at.SetCurrentDebugLocation(place);
    said_in_.push_back(at.GetInsertBlock());
    for (const Hint& hint : hints) {
      at.CreateCall(callee, {hint.begin, hint.bytes, hint.stride, at.getInt32(hint.range.flags)});
      report_hint(loop, hint.range);
      if (evenly_ != nullptr) evenly_->insert(hint.range.evenly.begin(), hint.range.evenly.end());
    }
    return true;
  }

  // What only a hint needs is computed only if it is said: where loops are short that is never, and registers are dear.
  static void sink_into(llvm::BasicBlock& block) {
    llvm::SmallVector<llvm::Instruction*> users;
    for (llvm::Instruction& instruction : llvm::reverse(block)) users.push_back(&instruction);
    for (std::size_t i = 0; i < users.size(); ++i) {
      for (Value* operand : users[i]->operands()) {
        auto* computed = llvm::dyn_cast<llvm::Instruction>(operand);
        if (computed == nullptr || computed->getParent() == &block || !can_sink(*computed, block)) continue;
        computed->moveBefore(block, block.getFirstInsertionPt());
        users.push_back(computed);
      }
    }
  }

  static bool can_sink(const llvm::Instruction& computed, const llvm::BasicBlock& block) {
    if (llvm::isa<llvm::PHINode>(computed) || computed.isTerminator() || computed.mayHaveSideEffects() ||
        computed.mayReadFromMemory() || computed.getType()->isTokenTy() || llvm::isa<llvm::AllocaInst>(computed)) {
      return false;
    }
    return llvm::all_of(computed.users(), [&](const llvm::User* user) {
      const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user);
      return instruction != nullptr && instruction->getParent() == &block && !llvm::isa<llvm::PHINode>(instruction);
    });
  }

  void report_hint(const Loop& loop, const LoopRange& range) {
    if (!report_.is_wanted()) return;
    std::string text = (range.flags & kWrites) == 0  ? "reads"
                       : (range.flags & kReads) == 0 ? "writes"
                                                     : "reads and writes";
    text += (range.flags & kBackward) != 0 ? ", backward" : "";
    llvm::raw_string_ostream out(text);
    if (range.stride == nullptr) {
      out << ", strides that differ";
    } else if (const auto* number = llvm::dyn_cast<llvm::SCEVConstant>(range.stride)) {
      out << ", stride " << number->getAPInt().getSExtValue();
    } else {
      out << ", a stride that the program computes";
    }
    report_.add(function_, loop.getStartLoc(), "hinted", text, {{"accesses", range.accesses}});
  }

  llvm::Function& function_;
  const Settings& settings_;
  Report& report_;
  Touches* evenly_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  llvm::TargetTransformInfo& costs_;
  llvm::SCEVExpander expander_;
  llvm::SmallVector<llvm::BasicBlock*> said_in_;
};

}  // namespace

bool hint_loops(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Settings& settings,
                Report& report, Touches* evenly) {
  llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  if (loops.empty()) return false;
  const auto made = make_preheaders(loops, analyses.getResult<llvm::DominatorTreeAnalysis>(function));
  if (!made.empty()) {
    llvm::PreservedAnalyses kept;
    kept.preserve<llvm::LoopAnalysis>();
    kept.preserve<llvm::DominatorTreeAnalysis>();
    analyses.invalidate(function, kept);
  }
  const bool hinted = Inserter(function, analyses, settings, report, evenly).run();
  remove_unused(made);
  return hinted || !made.empty();
}

}  // namespace farheap::passes
