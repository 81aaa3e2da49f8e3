// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a class is "there" at a place if on every way to it, since its address was last computed, one of the
// class was touched, and nothing that may take long came after. An address that is computed anew, as in the next turn
// of a loop, needs no care: every way to its use leads by the place where it is computed, and the first of these ways
// has touched nothing of its class before.
#include "guard_accesses.hpp"

#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <optional>
#include <string>

#include "translate.hpp"

namespace farheap::passes {
namespace {

using llvm::dyn_cast;
using llvm::isa;
using llvm::Loop;
using llvm::SCEV;

// Beyond that many bits the classes are followed in single blocks only.
constexpr std::uint64_t kMostBits = std::uint64_t{1} << 28;

struct Access {
  llvm::Instruction* at;
  llvm::Value* pointer;
  bool writes;
  const SCEV* address = nullptr;
  std::int64_t offset = 0;  // from the class's key
  unsigned of = 0;          // its class
};

// Accesses whose addresses differ by less than kTogether.
struct Class {
  std::int64_t low, high;
};

// Anything might happen meanwhile, paging's begin too. Hints do not wait; functions of nothing but their arguments are
// mathematics.
bool may_take_long(const llvm::Instruction& instruction) {
  const auto* call = dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || isa<llvm::IntrinsicInst>(call) || call->isInlineAsm()) return false;
  const llvm::Function* callee = call->getCalledFunction();
  return !call->doesNotAccessMemory() && (callee == nullptr || callee->getName() != "__farheap_loop");
}

// A table of virtual functions is no object.
bool is_of_virtual_table(const llvm::Value* pointer) {
  const auto* load = dyn_cast<llvm::LoadInst>(llvm::getUnderlyingObject(pointer));
  if (load == nullptr) return false;
  const llvm::MDNode* kind = load->getMetadata(llvm::LLVMContext::MD_tbaa);
  return kind != nullptr && kind->isTBAAVtableAccess();
}

class Planner {
 public:
  Planner(llvm::Function& function, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
          llvm::ScalarEvolution& evolution, const Touches& evenly, CanComputeBefore can_compute)
      : function_(function),
        loops_(loops),
        dominators_(dominators),
        evolution_(evolution),
        evenly_(evenly),
        can_compute_(can_compute) {}

  Guards plan() {
    const llvm::ReversePostOrderTraversal<llvm::Function*> order(&function_);
    for (llvm::BasicBlock* block : order) {
      for (llvm::Instruction& instruction : *block) collect(instruction);
    }
    if (accesses_.empty()) return std::move(made_);
    classify();
    follow(order);
    for (llvm::BasicBlock* block : order) decide(*block);
    return std::move(made_);
  }

 private:
  // ---- which accesses there are

  void collect(llvm::Instruction& at) {
    if (auto* load = dyn_cast<llvm::LoadInst>(&at)) {
      add(at, load->getPointerOperand(), false);
    } else if (auto* store = dyn_cast<llvm::StoreInst>(&at)) {
      add(at, store->getPointerOperand(), true);
    } else if (auto* change = dyn_cast<llvm::AtomicRMWInst>(&at)) {
      add(at, change->getPointerOperand(), true);
    } else if (auto* exchange = dyn_cast<llvm::AtomicCmpXchgInst>(&at)) {
      add(at, exchange->getPointerOperand(), true);
    } else if (auto* memory = dyn_cast<llvm::AnyMemIntrinsic>(&at)) {
      add(at, memory->getRawDest(), true);
      if (auto* transfer = dyn_cast<llvm::AnyMemTransferInst>(memory)) add(at, transfer->getRawSource(), false);
    } else if (auto* call = dyn_cast<llvm::IntrinsicInst>(&at)) {
      collect_masked(*call);
    }
  }

  void collect_masked(llvm::IntrinsicInst& call) {
    switch (call.getIntrinsicID()) {
      case llvm::Intrinsic::masked_load: add(call, call.getArgOperand(0), false); break;
      case llvm::Intrinsic::masked_store: add(call, call.getArgOperand(1), true); break;
      case llvm::Intrinsic::masked_gather:
      case llvm::Intrinsic::vp_gather: made_.left.push_back({&call, "not guarded: gather"}); break;
      case llvm::Intrinsic::masked_scatter:
      case llvm::Intrinsic::vp_scatter: made_.left.push_back({&call, "not guarded: scatter"}); break;
      default: break;
    }
  }

  void add(llvm::Instruction& at, llvm::Value* pointer, bool writes) {
    if (evenly_.contains({&at, pointer}) || is_near(pointer) || is_of_virtual_table(pointer)) return;
    if (evolution_.getDataLayout().getPointerSizeInBits() != 64) return;
    accesses_.push_back({&at, pointer, writes});
  }

  // ---- which of them are close to each other

  std::int64_t constant_of(const SCEV* expression) {
    if (const auto* walk = dyn_cast<llvm::SCEVAddRecExpr>(expression)) return constant_of(walk->getStart());
    if (const auto* sum = dyn_cast<llvm::SCEVAddExpr>(expression)) expression = sum->getOperand(0);
    const auto* number = dyn_cast<llvm::SCEVConstant>(expression);
    return number != nullptr && number->getAPInt().isSignedIntN(32) ? number->getAPInt().getSExtValue() : 0;
  }

  void classify() {
    llvm::MapVector<const SCEV*, std::vector<Access*>> by_key;
    for (Access& access : accesses_) {
      access.address = evolution_.getSCEV(access.pointer);
      access.offset = constant_of(access.address);
      llvm::Type* number = evolution_.getEffectiveSCEVType(access.address->getType());
      const SCEV* back = evolution_.getConstant(number, static_cast<std::uint64_t>(-access.offset), true);
      by_key[evolution_.getAddExpr(access.address, back)].push_back(&access);
    }
    for (auto& [key, all] : by_key) {
      std::stable_sort(all.begin(), all.end(), [](const Access* a, const Access* b) { return a->offset < b->offset; });
      std::optional<std::int64_t> first;
      for (Access* access : all) {
        if (!first || access->offset - *first >= kTogether) {
          first = access->offset;
          classes_.push_back({*first, *first});
        }
        classes_.back().high = access->offset;
        access->of = static_cast<unsigned>(classes_.size() - 1);
      }
    }
    for (const Access& access : accesses_) at_[access.at].push_back(&access);
  }

  // ---- what has been touched before

  void pass(const llvm::Instruction& instruction, llvm::BitVector& there) const {
    if (may_take_long(instruction)) there.reset();
    const auto found = at_.find(&instruction);
    if (found == at_.end()) return;
    for (const Access* access : found->second) there.set(access->of);
  }

  llvm::BitVector before(const llvm::BasicBlock& block) const {
    llvm::BitVector there(static_cast<unsigned>(classes_.size()));
    if (after_.empty() || block.isEntryBlock()) return there;
    bool first = true;
    for (const llvm::BasicBlock* from : llvm::predecessors(&block)) {
      const auto found = after_.find(from);
      if (found == after_.end()) continue;  // never reached
      if (first) {
        there = found->second;
      } else {
        there &= found->second;
      }
      first = false;
    }
    return there;
  }

  // From "everything, everywhere" down to what is true on all ways.
  void follow(const llvm::ReversePostOrderTraversal<llvm::Function*>& order) {
    if (function_.size() * classes_.size() > kMostBits) return;
    for (const llvm::BasicBlock* block : order) after_[block].resize(static_cast<unsigned>(classes_.size()), true);
    for (bool changed = true; changed;) {
      changed = false;
      for (const llvm::BasicBlock* block : order) {
        llvm::BitVector there = before(*block);
        for (const llvm::Instruction& instruction : *block) pass(instruction, there);
        llvm::BitVector& known = after_[block];
        if (there == known) continue;
        known = std::move(there);
        changed = true;
      }
    }
  }

  // ---- what is guarded, and where

  void decide(const llvm::BasicBlock& block) {
    llvm::BitVector there = before(block);
    llvm::DenseMap<unsigned, std::size_t> of_this_block;
    for (const llvm::Instruction& instruction : block) {
      if (const auto found = at_.find(&instruction); found != at_.end()) {
        for (const Access* access : found->second) decide(*access, there, of_this_block);
      }
      if (may_take_long(instruction)) of_this_block.clear();
      pass(instruction, there);
    }
  }

  void decide(const Access& access, const llvm::BitVector& there,
              llvm::DenseMap<unsigned, std::size_t>& of_this_block) {
    if (const auto found = of_this_block.find(access.of); found != of_this_block.end()) {
      Guard& guard = made_.guards[found->second];
      ++guard.accesses;
      guard.writes = guard.writes || access.writes;  // it is certain to come to that
      return;
    }
    if (there.test(access.of)) {
      if (const auto last = last_of_.find(access.of); last != last_of_.end()) ++made_.guards[last->second].accesses;
      return;
    }
    of_this_block[access.of] = last_of_[access.of] = made_.guards.size();
    made_.guards.push_back({.access = access.at, .looks = {}, .writes = access.writes});
    place(access, made_.guards.back());
  }

  // From the access outwards.
  void place(const Access& access, Guard& guard) {
    Look look{.before = access.at, .pointer = access.pointer, .address = access.address};
    for (Loop* loop = loops_.getLoopFor(access.at->getParent()); loop != nullptr; loop = loop->getParentLoop()) {
      if (!is_passed_in_each_turn(*look.before, *loop)) break;
      llvm::Instruction* before = loop->getLoopPreheader()->getTerminator();
      if (evolution_.isLoopInvariant(look.address, loop)) {
        if (takes_long(*loop) || !can_compute_(look.address, *loop)) break;
        guard.hoisted = true;
      } else {
        const auto* walk = dyn_cast<llvm::SCEVAddRecExpr>(look.address);
        const std::int64_t step = walk != nullptr && walk->getLoop() == loop ? step_of(*walk) : 0;
        if (step == 0 || !can_compute_(walk->getStart(), *loop)) break;
        if (leaves_its_page(*loop, step)) {
          // What comes to the next page first: the copies of a body lie beside each other.
          look.ahead = step > 0 ? classes_[access.of].high - access.offset : classes_[access.of].low - access.offset;
          look.step = step;
          add_look(guard, look);
          guard.chunked = true;
        } else {
          guard.hoisted = true;
        }
        look.address = walk->getStart();
      }
      look.before = before;
      look.pointer = nullptr;
      look.ahead = look.step = 0;
    }
    add_look(guard, look);
  }

  void add_look(Guard& guard, Look look) {
    for (Loop* loop = loops_.getLoopFor(look.before->getParent()); loop != nullptr; loop = loop->getParentLoop()) {
      if (takes_long(*loop) || loop->getLoopPreheader() == nullptr) break;
      look.around = loop;
    }
    guard.looks.push_back(look);
  }

  bool is_passed_in_each_turn(const llvm::Instruction& instruction, const Loop& loop) const {
    const llvm::BasicBlock* latch = loop.getLoopLatch();
    return latch != nullptr && loop.getLoopPreheader() != nullptr &&
           dominators_.dominates(instruction.getParent(), latch);
  }

  // Less than a page; 0: it is more, or not known.
  std::int64_t step_of(const llvm::SCEVAddRecExpr& walk) {
    const auto* step = walk.isAffine() ? dyn_cast<llvm::SCEVConstant>(walk.getStepRecurrence(evolution_)) : nullptr;
    return step != nullptr && step->getAPInt().abs().ult(kPageBytes) ? step->getAPInt().getSExtValue() : 0;
  }

  bool leaves_its_page(Loop& loop, std::int64_t step) {
    const unsigned turns = evolution_.getSmallConstantMaxTripCount(&loop);
    return turns == 0 || turns * std::abs(step) >= kPageBytes;
  }

  bool takes_long(const Loop& loop) {
    const auto [found, is_new] = takes_long_.try_emplace(&loop, false);
    if (is_new) {
      for (const llvm::BasicBlock* block : loop.blocks()) {
        found->second = found->second || llvm::any_of(*block, may_take_long);
      }
    }
    return found->second;
  }

  llvm::Function& function_;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  const Touches& evenly_;
  CanComputeBefore can_compute_;
  std::vector<Access> accesses_;
  std::vector<Class> classes_;
  llvm::DenseMap<const llvm::Instruction*, llvm::SmallVector<const Access*, 2>> at_;
  llvm::DenseMap<const llvm::BasicBlock*, llvm::BitVector> after_;  // classes that are there at a block's end
  llvm::DenseMap<unsigned, std::size_t> last_of_;                   // of a class, its last guard
  llvm::DenseMap<const Loop*, bool> takes_long_;
  Guards made_;
};

}  // namespace

Guards find_guards(llvm::Function& function, llvm::LoopInfo& loops, llvm::DominatorTree& dominators,
                   llvm::ScalarEvolution& evolution, const Touches& evenly, CanComputeBefore can_compute) {
  return Planner(function, loops, dominators, evolution, evenly, can_compute).plan();
}

}  // namespace farheap::passes
