// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "loop_ranges.hpp"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace farheap::passes {
namespace {

using llvm::dyn_cast;
using llvm::isa;
using llvm::Loop;
using llvm::ScalarEvolution;
using llvm::SCEV;

constexpr unsigned kOffsetBits = 64;
constexpr std::int64_t kPage = 4096;

// A piece of memory that one instruction touches.
struct Access {
  llvm::Instruction* at;
  llvm::Value* pointer;
  const SCEV* bytes;
  unsigned flags;
};

class Finder {
 public:
  Finder(llvm::LoopInfo& loops, ScalarEvolution& evolution, const Settings& settings, CanCompute can_compute)
      : loops_(loops), evolution_(evolution), settings_(settings), can_compute_(can_compute) {}

  LoopRanges find() {
    for (Loop* loop : loops_.getLoopsInPreorder()) {
      for (llvm::BasicBlock* block : loop->blocks()) {
        if (loops_.getLoopFor(block) != loop) continue;  // an inner loop's, which comes by itself
        for (llvm::Instruction& instruction : *block) look_at(*loop, instruction);
      }
    }
    return std::move(found_);
  }

 private:
  void look_at(Loop& loop, llvm::Instruction& instruction) {
    if (const char* why = never_hinted(instruction)) {
      leave(instruction, why);
      return;
    }
    accesses_.clear();
    collect(instruction);
    for (const Access& access : accesses_) consider(loop, access);
  }

  void leave(const llvm::Instruction& access, std::string why) { found_.left.push_back({&access, std::move(why)}); }

  // What touches memory in ways that have no range. Faults take care of it.
  static const char* never_hinted(const llvm::Instruction& instruction) {
    if (instruction.isAtomic() && !isa<llvm::FenceInst>(instruction)) return "atomic";
    const auto* call = dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr) return nullptr;
    if (call->isInlineAsm()) return call->onlyAccessesInaccessibleMemory() ? nullptr : "inline assembly";
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::masked_gather:
      case llvm::Intrinsic::vp_gather: return "gather";
      case llvm::Intrinsic::masked_scatter:
      case llvm::Intrinsic::vp_scatter: return "scatter";
      default: return nullptr;
    }
  }

  void collect(llvm::Instruction& instruction) {
    if (auto* load = dyn_cast<llvm::LoadInst>(&instruction)) {
      collect_typed(instruction, load->getPointerOperand(), load->getType(), kReads);
    } else if (auto* store = dyn_cast<llvm::StoreInst>(&instruction)) {
      collect_typed(instruction, store->getPointerOperand(), store->getValueOperand()->getType(), kWrites);
    } else if (auto* memory = dyn_cast<llvm::AnyMemIntrinsic>(&instruction)) {
      const SCEV* bytes = evolution_.getTruncateOrZeroExtend(evolution_.getSCEV(memory->getLength()), word());
      accesses_.push_back({&instruction, memory->getRawDest(), bytes, kWrites});
      if (auto* transfer = dyn_cast<llvm::AnyMemTransferInst>(memory)) {
        accesses_.push_back({&instruction, transfer->getRawSource(), bytes, kReads});
      }
    } else if (auto* call = dyn_cast<llvm::IntrinsicInst>(&instruction)) {
      collect_masked(*call);
    }
  }

  // All lanes are counted, whether the mask has them or not.
  void collect_masked(llvm::IntrinsicInst& call) {
    switch (call.getIntrinsicID()) {
      case llvm::Intrinsic::masked_load:
      case llvm::Intrinsic::masked_expandload:
      case llvm::Intrinsic::vp_load: collect_typed(call, call.getArgOperand(0), call.getType(), kReads); break;
      case llvm::Intrinsic::masked_store:
      case llvm::Intrinsic::masked_compressstore:
      case llvm::Intrinsic::vp_store:
        collect_typed(call, call.getArgOperand(1), call.getArgOperand(0)->getType(), kWrites);
        break;
      default: break;
    }
  }

  void collect_typed(llvm::Instruction& at, llvm::Value* pointer, llvm::Type* type, unsigned flags) {
    const llvm::TypeSize size = evolution_.getDataLayout().getTypeStoreSize(type);
    if (size.isScalable()) {
      leave(at, "vector of a length that only the machine knows");
      return;
    }
    accesses_.push_back({&at, pointer, constant(static_cast<std::int64_t>(size.getFixedValue())), flags});
  }

  llvm::Type* word() const { return llvm::IntegerType::get(evolution_.getContext(), kOffsetBits); }
  const SCEV* constant(std::int64_t value) {
    return evolution_.getConstant(word(), static_cast<std::uint64_t>(value), true);
  }

  void consider(Loop& loop, const Access& access) {
    std::string why;
    const std::optional<LoopRange> range = range_of(loop, access, why);
    if (!range) {
      leave(*access.at, std::move(why));
    } else if (!merge(*range)) {
      found_.ranges.push_back(*range);
    }
  }

  std::optional<LoopRange> range_of(Loop& innermost, const Access& access, std::string& why) {
    if (access.pointer->getType()->getPointerAddressSpace() != 0) return why = "another address space", std::nullopt;
    const llvm::Value* object = llvm::getUnderlyingObject(access.pointer);
    if (settings_.anywhere) object = nullptr;
    if (llvm::isa_and_nonnull<llvm::AllocaInst>(object)) return why = "on the stack", std::nullopt;
    if (llvm::isa_and_nonnull<llvm::GlobalValue>(object)) return why = "a global variable", std::nullopt;
    const SCEV* address = evolution_.getSCEV(access.pointer);
    const SCEV* base = evolution_.getPointerBase(address);
    LoopRange range{.base = base, .flags = access.flags, .accesses = 1};
    range.low = evolution_.removePointerBase(address);
    if (range.low->getType() != word()) return why = "pointers are not of 64 bits", std::nullopt;
    range.high = evolution_.getAddExpr(range.low, access.bytes);
    range.stride = constant(0);
    grew_ = false;
    around_.clear();
    for (Loop* loop = &innermost; loop != nullptr; loop = loop->getParentLoop()) {
      around_.push_back(loop);
      LoopRange wider = range;
      if (!widen(wider, *loop, why)) break;
      wider.loop = loop;
      if (!can_compute_(wider, why)) break;
      grew_ = grew_ || wider.low != range.low || wider.high != range.high;
      range = wider;
    }
    if (range.loop == nullptr) return std::nullopt;
    if (!grew_) return why = "the same place in every turn", std::nullopt;
    if (evolution_.getUnsignedRangeMax(bytes_of(range)).ult(settings_.threshold))
      return why = "too short", std::nullopt;
    if (isa<llvm::SCEVConstant>(range.stride) && evolution_.isKnownNegative(range.stride)) range.flags |= kBackward;
    if (const auto* stride = dyn_cast<llvm::SCEVConstant>(range.stride);
        stride != nullptr && stride->getAPInt().abs().ult(kPage)) {
      range.evenly.emplace_back(access.at, access.pointer);
    }
    return range;
  }

  const SCEV* bytes_of(const LoopRange& range) { return evolution_.getMinusSCEV(range.high, range.low); }

  // From what one turn of `loop` touches to what all of its turns touch; false, with the reason, if that is not known
  // when it is entered.
  bool widen(LoopRange& range, Loop& loop, std::string& why) {
    if (loop.getLoopPreheader() == nullptr) return why = "the loop can be entered in several ways", false;
    if (!evolution_.isLoopInvariant(range.base, &loop)) return why = "the address is looked up in each turn", false;
    if (evolution_.isLoopInvariant(range.low, &loop) && evolution_.isLoopInvariant(range.high, &loop)) return true;
    const SCEV* turns = turns_of(loop);
    if (isa<llvm::SCEVCouldNotCompute>(turns)) return why = "how often the loop turns is not known before", false;
    const auto low = ends_of(range.low, loop, turns);
    const auto high = ends_of(range.high, loop, turns);
    if (!low || !high) return why = "the address does not advance evenly", false;
    if (!grew_) range.stride = step_of(range.low, loop);
    range.low = low->first;
    range.high = high->second;
    return true;
  }

  // How often the loop goes back to its head. Where that holds only if a counter does not wrap around, it does not.
  const SCEV* turns_of(Loop& loop) {
    const SCEV* turns = evolution_.getBackedgeTakenCount(&loop);
    if (!isa<llvm::SCEVCouldNotCompute>(turns)) return turns;
    llvm::SmallVector<const llvm::SCEVPredicate*, 4> predicates;
    turns = evolution_.getPredicatedBackedgeTakenCount(&loop, predicates);
    return are_about_wrapping(predicates) ? turns : evolution_.getCouldNotCompute();
  }

  // `expression` as {start,+,step} of `loop`; null if it is none.
  const llvm::SCEVAddRecExpr* as_walk(const SCEV* expression, Loop& loop) {
    const auto* walk = dyn_cast<llvm::SCEVAddRecExpr>(expression);
    if (walk == nullptr) {
#if LLVM_VERSION_MAJOR >= 20
      llvm::SmallVector<const llvm::SCEVPredicate*, 4> predicates;
#else
      llvm::SmallPtrSet<const llvm::SCEVPredicate*, 4> predicates;
#endif
      walk = evolution_.convertSCEVToAddRecWithPredicates(expression, &loop, predicates);
      if (!are_about_wrapping(predicates)) return nullptr;
    }
    return walk != nullptr && walk->getLoop() == &loop && walk->isAffine() ? walk : nullptr;
  }

  template <class Predicates>
  static bool are_about_wrapping(const Predicates& predicates) {
    return llvm::all_of(predicates,
                        [](const llvm::SCEVPredicate* predicate) { return isa<llvm::SCEVWrapPredicate>(predicate); });
  }

  // The smallest and the largest value of `expression` in the loop.
  std::optional<std::pair<const SCEV*, const SCEV*>> ends_of(const SCEV* expression, Loop& loop, const SCEV* turns) {
    if (evolution_.isLoopInvariant(expression, &loop)) return {{expression, expression}};
    const auto* walk = as_walk(expression, loop);
    if (walk == nullptr) return std::nullopt;
    const SCEV* step = walk->getStepRecurrence(evolution_);
    const SCEV* far = evolution_.getMulExpr(evolution_.getTruncateOrZeroExtend(turns, expression->getType()), step);
    const SCEV* first = walk->getStart();
    const SCEV* last = evolution_.getAddExpr(first, far);
    if (goes_up(step)) return {{first, last}};
    if (evolution_.isKnownNonPositive(step)) return {{last, first}};
    return {{evolution_.getSMinExpr(first, last), evolution_.getSMaxExpr(first, last)}};
  }

  // Also by a condition that guards the loops, as when a row's length is the number of turns of the inner loop. The
  // product with a size does not wrap.
  bool goes_up(const SCEV* step) {
    if (evolution_.isKnownNonNegative(step)) return true;
    const auto* product = dyn_cast<llvm::SCEVMulExpr>(step);
    if (product != nullptr && product->getNumOperands() == 2 && evolution_.isKnownPositive(product->getOperand(0))) {
      step = product->getOperand(1);
    }
    if (const auto* wider = dyn_cast<llvm::SCEVSignExtendExpr>(step)) step = wider->getOperand();
    if (evolution_.isKnownNonNegative(step)) return true;
    for (const Loop* loop : around_) {
      if (evolution_.isKnownNonNegative(evolution_.applyLoopGuards(step, loop))) return true;
    }
    return false;
  }

  const SCEV* step_of(const SCEV* expression, Loop& loop) {
    const auto* walk = as_walk(expression, loop);
    return walk != nullptr ? walk->getStepRecurrence(evolution_) : constant(0);
  }

  // Into a range that is there already, if the two touch, or nearly do, or take turns.
  bool merge(const LoopRange& more) {
    for (LoopRange& range : found_.ranges) {
      if (range.loop != more.loop || range.base != more.base) continue;
      if (!merge_near(range, more) && !merge_interleaved(range, more)) continue;
      if (range.stride != more.stride) range.stride = nullptr;
      // Backward is only what is so for all.
      const unsigned backward = range.flags & more.flags & kBackward;
      range.flags = ((range.flags | more.flags) & ~static_cast<unsigned>(kBackward)) | backward;
      ++range.accesses;
      range.evenly.append(more.evenly);
      return true;
    }
    return false;
  }

  bool merge_near(LoopRange& range, const LoopRange& more) {
    const auto low = distance(more.low, range.low);
    const auto high = distance(more.high, range.high);
    if (!low || !high || !is_near(*low) || !is_near(*high)) return false;
    if (*low < 0) range.low = more.low;
    if (*high > 0) range.high = more.high;
    return true;
  }

  // The copies of an unrolled loop's body: each begins a part of the stride after the one before.
  bool merge_interleaved(LoopRange& range, const LoopRange& more) {
    if (range.stride != more.stride || range.stride == nullptr || isa<llvm::SCEVConstant>(range.stride)) return false;
    const auto [times, unit] = factor(range.stride);
    const auto [low_times, low_unit] = factor(evolution_.getMinusSCEV(more.low, range.low));
    const auto [high_times, high_unit] = factor(evolution_.getMinusSCEV(more.high, range.high));
    if (low_unit != unit || high_unit != unit) return false;
    if (std::abs(low_times) >= std::abs(times) || std::abs(high_times) >= std::abs(times)) return false;
    if (goes_up(unit)) {
      if (low_times < 0) range.low = more.low;
      if (high_times > 0) range.high = more.high;
    } else {
      range.low = evolution_.getSMinExpr(range.low, more.low);
      range.high = evolution_.getSMaxExpr(range.high, more.high);
    }
    return true;
  }

  // 24 and n of 24 * n.
  std::pair<std::int64_t, const SCEV*> factor(const SCEV* expression) {
    const auto* product = dyn_cast<llvm::SCEVMulExpr>(expression);
    if (product == nullptr) return {1, expression};
    const auto* number = dyn_cast<llvm::SCEVConstant>(product->getOperand(0));
    if (number == nullptr) return {1, expression};
    llvm::SmallVector<const SCEV*, 4> others(llvm::drop_begin(product->operands()));
    return {number->getAPInt().getSExtValue(), evolution_.getMulExpr(others)};
  }

  std::optional<std::int64_t> distance(const SCEV* to, const SCEV* from) {
    const auto* difference = dyn_cast<llvm::SCEVConstant>(evolution_.getMinusSCEV(to, from));
    if (difference == nullptr) return std::nullopt;
    return difference->getAPInt().getSExtValue();
  }

  // A gap as long as what is worth a hint is worth two hints.
  bool is_near(std::int64_t distance) const {
    const auto limit = static_cast<std::int64_t>(std::min<std::uint64_t>(settings_.threshold, INT64_MAX));
    return distance > -limit && distance < limit;
  }

  llvm::LoopInfo& loops_;
  ScalarEvolution& evolution_;
  const Settings& settings_;
  CanCompute can_compute_;
  std::vector<Access> accesses_;
  LoopRanges found_;
  // Of the range that is looked at:
  bool grew_ = false;                   // in some loop so far
  llvm::SmallVector<Loop*, 4> around_;  // the loops so far, from the inside
};

}  // namespace

LoopRanges find_loop_ranges(llvm::LoopInfo& loops, llvm::ScalarEvolution& evolution, const Settings& settings,
                            CanCompute can_compute) {
  return Finder(loops, evolution, settings, can_compute).find();
}

}  // namespace farheap::passes
