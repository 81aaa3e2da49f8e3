// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: each load, store, atomic and memory intrinsic of the function is in exactly one sum, and a sum is executed
// exactly as often as what is in it. What may not be executed to its end (a call that throws, jumps or ends the
// program) ends a sum.
#include "context_plan.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>

#include <map>
#include <tuple>

namespace farheap::passes {
namespace {

using llvm::BasicBlock;
using llvm::dyn_cast;
using llvm::Instruction;
using llvm::isa;
using llvm::Loop;
using llvm::Value;

constexpr unsigned kMostLoops = 250;         // contexts of one function; what is deeper is part of what is around it
constexpr unsigned kMostSlotsOfContext = 8;  // pointers that are told apart in one context
constexpr unsigned kMostSlots = 400;         // in a function
constexpr unsigned kShortLoop = 16;          // turns: what has no more is not worth a context
constexpr unsigned kBytesOfAccess = 8;       // copies and fills count as accesses of words
constexpr unsigned kDeepest = 12;            // steps back to what a pointer is computed from

// Functions of the C library that call back nobody, end, and throw nothing.
bool is_quiet_library_call(const llvm::CallBase& call, const llvm::TargetLibraryInfo& library) {
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr || !callee->isDeclaration() || !call.doesNotThrow()) return false;
  if (!call.hasFnAttr(llvm::Attribute::WillReturn)) return false;
  llvm::LibFunc known;
  return call.hasFnAttr(llvm::Attribute::NoCallback) || library.getLibFunc(*callee, known);
}

bool leads_elsewhere(const Instruction& instruction, const llvm::TargetLibraryInfo& library) {
  const auto* call = dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || call->isInlineAsm() || isa<llvm::IntrinsicInst>(call)) return false;
  // The runtime asks where memory is allocated. Behind a `musttail` call nothing can be added.
  return call->returnDoesNotAlias() || call->isMustTailCall() || !is_quiet_library_call(*call, library);
}

// A vector of whole numbers or fractions is as many accesses as it has lanes.
std::uint64_t lanes_of(const llvm::Type* type) {
  const auto* vector = dyn_cast<llvm::FixedVectorType>(type);
  return vector != nullptr ? vector->getNumElements() : 1;
}

struct Touch {
  Value* pointer = nullptr;
  std::uint64_t reads = 0, writes = 0;
  Value* bytes = nullptr;  // not nullptr: of so many, not known before
};

void add_intrinsic(const llvm::IntrinsicInst& call, std::vector<Touch>& touches) {
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_load:
    case llvm::Intrinsic::masked_expandload:
      touches.push_back({call.getArgOperand(0), lanes_of(call.getType()), 0});
      break;
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_compressstore:
      touches.push_back({call.getArgOperand(1), 0, lanes_of(call.getArgOperand(0)->getType())});
      break;
    case llvm::Intrinsic::masked_gather: touches.push_back({nullptr, lanes_of(call.getType()), 0}); break;
    case llvm::Intrinsic::masked_scatter:
      touches.push_back({nullptr, 0, lanes_of(call.getArgOperand(0)->getType())});
      break;
    default: break;
  }
  if (const auto* copy = dyn_cast<llvm::AnyMemIntrinsic>(&call)) {
    touches.push_back({copy->getRawDest(), 0, 1, copy->getLength()});
    if (const auto* from = dyn_cast<llvm::AnyMemTransferInst>(&call)) {
      touches.push_back({from->getRawSource(), 1, 0, from->getLength()});
    }
  }
}

std::vector<Touch> touches_of(const Instruction& instruction) {
  std::vector<Touch> touches;
  if (const auto* load = dyn_cast<llvm::LoadInst>(&instruction)) {
    touches.push_back({const_cast<Value*>(load->getPointerOperand()), lanes_of(load->getType()), 0});
  } else if (const auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
    touches.push_back(
        {const_cast<Value*>(store->getPointerOperand()), 0, lanes_of(store->getValueOperand()->getType())});
  } else if (const auto* change = dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    touches.push_back({const_cast<Value*>(change->getPointerOperand()), 1, 1});
  } else if (const auto* exchange = dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    touches.push_back({const_cast<Value*>(exchange->getPointerOperand()), 1, 1});
  } else if (const auto* call = dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    add_intrinsic(*call, touches);
  }
  // A length that is known is a number.
  for (Touch& touch : touches) {
    const auto* known = llvm::dyn_cast_or_null<llvm::ConstantInt>(touch.bytes);
    if (known == nullptr) continue;
    const std::uint64_t words = (known->getLimitedValue() + kBytesOfAccess - 1) / kBytesOfAccess;
    touch.reads *= words;
    touch.writes *= words;
    touch.bytes = nullptr;
  }
  return touches;
}

class Planner {
 public:
  Planner(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : function_(function),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        assumptions_(analyses.getResult<llvm::AssumptionAnalysis>(function)),
        library_(analyses.getResult<llvm::TargetLibraryAnalysis>(function)) {}

  ContextPlan plan() {
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      if (loop->isOutermost()) {
        llvm::simplifyLoop(loop, &dominators_, &loops_, &evolution_, &assumptions_, nullptr, false);
      }
    }
    find_calls();
    for (Loop* loop : loops_.getLoopsInPreorder()) add_loop(*loop);
    for (BasicBlock& block : function_) {
      if (const unsigned context = context_of(block); context != 0) plan_.contexts[&block] = context;
    }
    look_at_blocks();
    return std::move(plan_);
  }

 private:
  // ---- contexts

  void find_calls() {
    plan_.is_quiet = true;
    for (BasicBlock& block : function_) {
      for (Instruction& instruction : block) {
        if (!leads_elsewhere(instruction, library_)) continue;
        plan_.is_quiet = false;
        plan_.calls.push_back(llvm::cast<llvm::CallBase>(&instruction));
        for (Loop* loop = loops_.getLoopFor(&block); loop != nullptr; loop = loop->getParentLoop()) loud_.insert(loop);
      }
    }
  }

  [[nodiscard]] bool is_quiet(const Loop& loop) const { return !loud_.contains(&loop); }

  // Something has to be added where it begins, and wherever it ends.
  static bool can_be_counted(const Loop& loop) {
    if (!loop.isLoopSimplifyForm()) return false;
    llvm::SmallVector<BasicBlock*, 8> exits;
    loop.getUniqueExitBlocks(exits);
    return llvm::all_of(exits, [](const BasicBlock* exit) { return exit->getFirstInsertionPt() != exit->end(); });
  }

  void add_loop(Loop& loop) {
    if (!can_be_counted(loop)) return;
    int nest = -1;
    if (is_quiet(loop)) {
      const Loop* outer = loop.getParentLoop();
      while (outer != nullptr && nests_.count(outer) == 0) outer = outer->getParentLoop();
      nest = outer != nullptr ? nests_[outer] : static_cast<int>(plan_.nests.size());
      if (outer == nullptr) plan_.nests.push_back({&loop, {}, {}});
      nests_[&loop] = nest;
    }
    const unsigned turns = evolution_.getSmallConstantMaxTripCount(&loop);
    const bool is_short = is_quiet(loop) && turns != 0 && turns <= kShortLoop;
    // The outermost of a nest is where its sums are added, so that it has a context of its own in any case.
    const bool is_outermost = nest >= 0 && plan_.nests[static_cast<std::size_t>(nest)].loop == &loop;
    if (is_short && !is_outermost) return;
    const unsigned context = context_for(loop);
    if (context == 0) return;
    numbers_[&loop] = context;
    plan_.counted.push_back({&loop, context, nest});
  }

  unsigned context_around(const Loop* loop) const {
    for (; loop != nullptr; loop = loop->getParentLoop()) {
      if (const auto found = numbers_.find(loop); found != numbers_.end()) return found->second;
    }
    return 0;
  }

  unsigned context_of(const BasicBlock& block) const { return context_around(loops_.getLoopFor(&block)); }

  // That of a loop of the same place, or a new one; 0: there are too many.
  unsigned context_for(const Loop& loop) {
    LoopContext one;
    one.parent = context_around(loop.getParentLoop());
    one.is_quiet = is_quiet(loop);
    const llvm::DebugLoc where = loop.getStartLoc();
    if (where) {
      const auto* place = llvm::cast<llvm::DILocation>(where.get());
      const llvm::DISubprogram* of = place->getScope()->getSubprogram();
      one.function = llvm::demangle(of->getLinkageName().empty() ? of->getName() : of->getLinkageName());
      one.file = place->getFilename().str();
      one.line = place->getLine();
      const auto [known, is_new] = places_.try_emplace({place, one.parent, one.is_quiet}, plan_.loops.size() + 1);
      if (!is_new) return known->second;
    } else {
      one.function = llvm::demangle(function_.getName());
    }
    if (plan_.loops.size() >= kMostLoops) return 0;
    plan_.loops.push_back(std::move(one));
    return static_cast<unsigned>(plan_.loops.size());
  }

  // ---- sums

  // The nest that a block is counted in; -1: none.
  int nest_of(const BasicBlock& block) const {
    for (const Loop* loop = loops_.getLoopFor(&block); loop != nullptr; loop = loop->getParentLoop()) {
      if (const auto found = nests_.find(loop); found != nests_.end()) return found->second;
    }
    return -1;
  }

  void look_at_blocks() {
    llvm::ReversePostOrderTraversal<llvm::Function*> order(&function_);
    merges_ = !llvm::containsIrreducibleCFG<BasicBlock*>(order, loops_);
    const llvm::PostDominatorTree ends(function_);
    for (BasicBlock* block : order) {
      const int nest = nest_of(*block);
      if (nest < 0) {
        look_at_straight_code(*block);
      } else {
        look_at_quiet_block(*block, plan_.nests[static_cast<std::size_t>(nest)], ends);
      }
    }
    for (const CountedLoop& loop : plan_.counted) {
      if (loop.nest < 0) continue;
      QuietNest& nest = plan_.nests[static_cast<std::size_t>(loop.nest)];
      if (nest.loop == loop.loop) continue;  // one visit, where its sums are added
      BasicBlock* before = loop.loop->getLoopPreheader();
      add_weight(sum_of(*before, nest, ends), {loop.context, 1, 0, 0});
    }
    for (QuietNest& nest : plan_.nests) {
      llvm::erase_if(nest.sums, [](const Sum& sum) { return sum.weights.empty() && sum.uses.empty(); });
    }
  }

  void look_at_straight_code(BasicBlock& block) {
    Sum sum;
    const unsigned context = context_of(block);
    const auto end = [&](Instruction& at) {
      if (!sum.weights.empty()) {
        sum.at = &at;
        plan_.sums.push_back(std::move(sum));
      }
      sum = {};
    };
    for (Instruction& instruction : block) {
      if (leads_elsewhere(instruction, library_)) {
        end(instruction);
        continue;
      }
      for (const Touch& touch : touches_of(instruction)) {
        if (touch.bytes == nullptr) {
          add_touch(sum, touch, context, nullptr, instruction);
        } else {
          plan_.sums.push_back(sum_of_words(instruction, touch));
          add_touch(plan_.sums.back(), touch, context, nullptr, instruction);
        }
      }
    }
    // `musttail` calls are followed by a return at once; they have ended the sum.
    end(*block.getTerminator());
  }

  void look_at_quiet_block(BasicBlock& block, QuietNest& nest, const llvm::PostDominatorTree& ends) {
    const unsigned context = context_of(block);
    for (Instruction& instruction : block) {
      for (const Touch& touch : touches_of(instruction)) {
        if (touch.bytes == nullptr) {
          add_touch(sum_of(block, nest, ends), touch, context, &nest, instruction);
        } else {
          nest.sums.push_back(sum_of_words(instruction, touch));
          add_touch(nest.sums.back(), touch, context, &nest, instruction);
        }
      }
    }
  }

  // A copy or fill of a length that is not known before.
  static Sum sum_of_words(Instruction& at, const Touch& touch) {
    llvm::IRBuilder<> build(&at);
    llvm::IntegerType* word = build.getInt64Ty();
    Sum sum;
    sum.at = &at;
    Value* bytes = build.CreateZExtOrTrunc(touch.bytes, word);
    sum.times = build.CreateUDiv(build.CreateAdd(bytes, build.getInt64(kBytesOfAccess - 1)),
                                 build.getInt64(kBytesOfAccess), "farheap.words");
    return sum;
  }

  // That of the first block which is executed as often.
  Sum& sum_of(BasicBlock& block, QuietNest& nest, const llvm::PostDominatorTree& ends) {
    BasicBlock* first = &block;
    const Loop* loop = loops_.getLoopFor(&block);
    if (merges_) {
      for (auto* node = dominators_.getNode(&block)->getIDom(); node != nullptr; node = node->getIDom()) {
        BasicBlock* above = node->getBlock();
        if (!nest.loop->contains(above)) break;
        if (loops_.getLoopFor(above) == loop && ends.dominates(first, above)) first = above;
      }
    }
    const auto [found, is_new] = sums_.try_emplace(first, nest.sums.size());
    if (is_new) {
      Sum sum;
      sum.at = first->getTerminator();
      if (merges_ && first == loop->getHeader() && can_know_turns(*loop)) sum.counts_turns = loop;
      nest.sums.push_back(std::move(sum));
    }
    return nest.sums[found->second];
  }

  // It is left at the end of a turn only, so that what begins a turn ends it.
  bool can_know_turns(const Loop& loop) const {
    return loop.isLoopSimplifyForm() && loop.getExitingBlock() == loop.getLoopLatch() &&
           !isa<llvm::SCEVCouldNotCompute>(evolution_.getBackedgeTakenCount(&loop));
  }

  static void add_weight(Sum& sum, const Weight& more) {
    for (Weight& one : sum.weights) {
      if (one.context != more.context) continue;
      one.entries += more.entries;
      one.reads += more.reads;
      one.writes += more.writes;
      return;
    }
    sum.weights.push_back(more);
  }

  void add_touch(Sum& sum, const Touch& touch, unsigned context, QuietNest* nest, Instruction& at) {
    add_weight(sum, {context, 0, touch.reads, touch.writes});
    if (touch.pointer == nullptr) return;
    Value* pointer = object_of(touch.pointer, nest != nullptr ? nest->loop : nullptr, at);
    if (pointer == nullptr) return;
    const bool changes = nest != nullptr && !nest->loop->isLoopInvariant(pointer);
    const int slot = slot_for(pointer, context, changes ? nest->loop : nullptr);
    if (slot < 0) return;
    if (changes) nest->used.push_back({static_cast<unsigned>(slot), pointer, &at});
    for (ObjectUse& use : sum.uses) {
      if (use.slot != static_cast<unsigned>(slot)) continue;
      use.reads += touch.reads;
      use.writes += touch.writes;
      if (!changes) use.pointer = pointer;
      return;
    }
    sum.uses.push_back({changes ? nullptr : pointer, static_cast<unsigned>(slot), touch.reads, touch.writes});
  }

  // ---- which object

  // What an address is computed from: a pointer that stays the same in `loop`, if there is one. nullptr: what it points
  // to is not in the heap, or no pointer is there.
  Value* object_of(Value* pointer, const Loop* loop, Instruction& at) {
    Value* base = llvm::getUnderlyingObject(pointer, kDeepest);
    if (auto* changing = dyn_cast<llvm::PHINode>(base);
        changing != nullptr && loop != nullptr && evolution_.isSCEVable(changing->getType())) {
      // A pointer that advances: what it began with.
      const llvm::SCEV* begin = evolution_.getPointerBase(evolution_.getSCEV(pointer));
      if (const auto* known = dyn_cast<llvm::SCEVUnknown>(begin)) {
        base = llvm::getUnderlyingObject(known->getValue(), kDeepest);
      }
    }
    if (isa<llvm::AllocaInst, llvm::Constant>(base) || base->getType() != pointer->getType()) return nullptr;
    if (!base->getType()->isPointerTy() || base->getType()->getPointerAddressSpace() != 0) return nullptr;
    if (const auto* argument = dyn_cast<llvm::Argument>(base); argument != nullptr && argument->hasByValAttr()) {
      return nullptr;
    }
    if (auto* there = dyn_cast<Instruction>(base); there != nullptr && !dominators_.dominates(there, &at))
      return nullptr;
    return base;
  }

  // Without optimisation each use of a variable loads it anew: it is one pointer all the same.
  static const Value* variable_of(const Value& pointer) {
    const auto* load = dyn_cast<llvm::LoadInst>(&pointer);
    return load != nullptr && isa<llvm::AllocaInst, llvm::GlobalVariable>(load->getPointerOperand())
               ? load->getPointerOperand()
               : &pointer;
  }

  // `changing_in`: the nest's loop for a pointer that has a register of its own. -1: there is no room.
  int slot_for(const Value* pointer, unsigned context, const Loop* changing_in) {
    const auto key = std::tuple(variable_of(*pointer), context, changing_in);
    if (const auto found = slots_.find(key); found != slots_.end()) return found->second;
    if (plan_.slot_contexts.size() >= kMostSlots || slots_of_context_[context] >= kMostSlotsOfContext) return -1;
    ++slots_of_context_[context];
    plan_.slot_contexts.push_back(context);
    return slots_[key] = static_cast<int>(plan_.slot_contexts.size() - 1);
  }

  llvm::Function& function_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  llvm::AssumptionCache& assumptions_;
  const llvm::TargetLibraryInfo& library_;
  bool merges_ = false;  // blocks that are executed equally often are known
  ContextPlan plan_;
  llvm::SmallPtrSet<const Loop*, 8> loud_;
  llvm::DenseMap<const Loop*, int> nests_;
  llvm::DenseMap<const Loop*, unsigned> numbers_;
  std::map<std::tuple<const llvm::DILocation*, unsigned, bool>, unsigned> places_;
  llvm::DenseMap<const BasicBlock*, std::size_t> sums_;
  std::map<std::tuple<const Value*, unsigned, const Loop*>, int> slots_;
  llvm::DenseMap<unsigned, unsigned> slots_of_context_;
};

}  // namespace

ContextPlan plan_contexts(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  return Planner(function, analyses).plan();
}

}  // namespace farheap::passes
