// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: the program computes what it did. Looks read the view and nothing of the program's; an address that is
// looked at before it is used, or without that, is computed only where that is safe, and may be poison: it is frozen.
#include "guards.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/DomTreeUpdater.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <map>
#include <string>
#include <tuple>

#include "guard_accesses.hpp"
#include "residency.hpp"

namespace farheap::passes {
namespace {

using llvm::Value;

constexpr unsigned kMostInstructions = 16;  // to compute an address before a loop, by the measure of LLVM's expander
constexpr unsigned kPageShift = 12;
// Programs that are not paged are never in the view; those that are can afford the jump out of line and back.
constexpr unsigned kInViewWeight = 1, kNotInViewWeight = 15;
constexpr unsigned kAwayWeight = 1, kHereWeight = 2000;

struct View {
  Value* begin;
  Value* bytes;
  Value* away;
};

class Inserter {
 public:
  Inserter(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Settings& settings,
           GuardProfile* profile, Report& report)
      : function_(function),
        records_(settings.guards == kRecord),
        profile_(profile),
        report_(report),
        loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
        dominators_(analyses.getResult<llvm::DominatorTreeAnalysis>(function)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        costs_(analyses.getResult<llvm::TargetIRAnalysis>(function)),
        updater_(dominators_, llvm::DomTreeUpdater::UpdateStrategy::Eager),
        word_(llvm::Type::getInt64Ty(function.getContext())),
#if LLVM_VERSION_MAJOR >= 22
        expander_(evolution_, "farheap") {
  }
#else
        expander_(evolution_, function.getParent()->getDataLayout(), "farheap") {
  }
#endif

  bool run(const Touches& evenly) {
    Guards found = find_guards(function_, loops_, dominators_, evolution_, evenly,
                               [&](const llvm::SCEV* address, llvm::Loop& loop) { return can_compute(address, loop); });
    for (const LeftOut& left : found.left) note(*left.access, "left", left.why, 1);
    if (!found.guards.empty() && (records_ || profile_ != nullptr)) shape_ = shape_of(function_);
    choose(found.guards);
    if (!found.guards.empty()) insert_all(found.guards);
    write_notes();
    return !found.guards.empty();
  }

 private:
  bool can_compute(const llvm::SCEV* address, llvm::Loop& loop) {
    llvm::Instruction* before = loop.getLoopPreheader()->getTerminator();
    return expander_.isSafeToExpandAt(address, before) &&
           !expander_.isHighCostExpansion({address}, &loop, kMostInstructions, &costs_, before);
  }

  // ---- what the profile says

  void choose(std::vector<Guard>& guards) {
    if (profile_ == nullptr || guards.empty()) return;
    std::string why;
    const FunctionProfile* known = profile_->find(function_, shape_, guards.size(), why);
    if (known == nullptr) {
      report_.add(function_, {}, "guarded", why);
      return;
    }
    std::vector<Guard> chosen;
    for (std::size_t i = 0; i < guards.size(); ++i) {
      if (is_worth_a_guard(known->of(i))) {
        chosen.push_back(std::move(guards[i]));
      } else {
        note(*guards[i].access, "left", "by the profile: it seldom misses, or never ran", guards[i].accesses);
      }
    }
    guards = std::move(chosen);
  }

  // ---- the report: one line for all of a source line that are alike, as unrolling makes many of one

  void note(const llvm::Instruction& access, llvm::StringRef what, llvm::StringRef text, unsigned accesses) {
    if (!report_.is_wanted()) return;
    const llvm::DebugLoc& where = access.getDebugLoc();
    const llvm::StringRef kind = llvm::isa<llvm::CallBase>(access) ? "call" : access.getOpcodeName();
    Note& one = notes_[{where ? where.getLine() : 0, what.str(), (kind + ": " + text).str()}];
    one.where = where;
    ++one.guards;
    one.accesses += accesses;
  }

  void note(const Guard& guard) {
    const std::string text = std::string(guard.chunked   ? "where it enters a page"
                                         : guard.hoisted ? "before the loop"
                                                         : "before the access") +
                             (guard.writes ? ", for writing" : "");
    note(*guard.access, "guarded", text, guard.accesses);
  }

  void write_notes() {
    for (const auto& [key, one] : notes_) {
      const auto& [line, what, text] = key;
      if (what == "guarded") {
        report_.add(function_, one.where, what, text, {{"guards", one.guards}, {"accesses", one.accesses}});
      } else {
        report_.add(function_, one.where, what, text, {{"accesses", one.accesses}});
      }
    }
  }

  // ---- what is inserted

  void insert_all(const std::vector<Guard>& guards) {
    view_ = view_of(*function_.getParent());
    slow_ = slow_way_of(function_);
    if (records_) counters_ = make_guard_counters(function_, shape_, guards.size());
    // All is computed, and read before loops, before the first branch is inserted: that splits blocks.
    std::vector<std::vector<Value*>> addresses;
    for (const Guard& guard : guards) {
      addresses.emplace_back();
      for (const Look& look : guard.looks) addresses.back().push_back(address_of(guard, look));
    }
    for (std::size_t i = 0; i < guards.size(); ++i) {
      for (std::size_t j = 0; j < guards[i].looks.size(); ++j) {
        insert(guards[i], guards[i].looks[j], addresses[i][j], i, j == 0);
      }
      note(guards[i]);
    }
  }

  // That of the access; without a line if that is not known.
  llvm::DebugLoc place_of(const Guard& guard) const {
    if (const llvm::DebugLoc& where = guard.access->getDebugLoc()) return where;
    llvm::DISubprogram* known = function_.getSubprogram();
    if (known == nullptr) return {};
    return llvm::DILocation::get(function_.getContext(), 0, 0, known);
  }

  Value* address_of(const Guard& guard, const Look& look) {
    llvm::IRBuilder<> at(look.before);
    at.SetCurrentDebugLocation(place_of(guard));
    Value* pointer = look.pointer;
    if (pointer == nullptr) {
      pointer =
          at.CreateFreeze(expander_.expandCodeFor(look.address, look.address->getType(), look.before->getIterator()));
    }
    if (look.around != nullptr) view_before(*look.around, place_of(guard));
    Value* address = pointer->getType()->isPointerTy() ? at.CreatePtrToInt(pointer, word_) : pointer;
    if (look.ahead != 0) address = at.CreateAdd(address, at.getInt64(static_cast<std::uint64_t>(look.ahead)));
    return address;
  }

  // Once for all looks of the loop: paging can hardly begin while nothing is called in it.
  void view_before(const llvm::Loop& loop, const llvm::DebugLoc& where) {
    if (views_.contains(&loop)) return;
    llvm::IRBuilder<> at(loop.getLoopPreheader()->getTerminator());
    at.SetCurrentDebugLocation(where);
    View view = read_range(at);
    view.away = read_away(at);
    views_.insert({&loop, view});
  }

  Value* read(llvm::IRBuilder<>& at, llvm::Type* type, unsigned field, llvm::AtomicOrdering order) {
    llvm::StructType* layout = view_type(function_.getContext());
    llvm::LoadInst* load = at.CreateAlignedLoad(type, at.CreateConstInBoundsGEP2_32(layout, view_, 0, field),
                                                llvm::Align(8), "farheap.view");
    load->setAtomic(order);
    return load;
  }

  Value* read_away(llvm::IRBuilder<>& at) { return read(at, at.getPtrTy(), 2, llvm::AtomicOrdering::Monotonic); }

  // In the order of farheap/residency.h. `away` is not read: read_away() does that, behind the first branch if it can.
  View read_range(llvm::IRBuilder<>& at) {
    Value* begin = read(at, word_, 0, llvm::AtomicOrdering::Monotonic);
    return {begin, read(at, word_, 1, llvm::AtomicOrdering::Acquire), nullptr};
  }

  llvm::Instruction* branch(llvm::IRBuilder<>& at, Value* condition, std::uint32_t yes, std::uint32_t no) {
    llvm::MDNode* weights = llvm::MDBuilder(function_.getContext()).createBranchWeights(yes, no);
    llvm::Instruction* then =
        llvm::SplitBlockAndInsertIfThen(condition, at.GetInsertPoint(), false, weights, &updater_, &loops_);
    then->setDebugLoc(at.getCurrentDebugLocation());
    at.SetInsertPoint(then);
    return then;
  }

  // Where the last step led to another page: what is aligned needs one instruction for it.
  static Value* enters_page(llvm::IRBuilder<>& at, Value* address, std::int64_t step) {
    const std::uint64_t size = static_cast<std::uint64_t>(std::abs(step));
    if (step > 0 && llvm::isPowerOf2_64(size)) {
      return at.CreateIsNull(at.CreateAnd(address, at.getInt64(kPageBytes - size)));
    }
    if (step < 0) address = at.CreateAdd(address, at.getInt64(size));
    return at.CreateICmpULT(at.CreateAnd(address, at.getInt64(kPageBytes - 1)), at.getInt64(size));
  }

  void count(llvm::IRBuilder<>& at, std::size_t guard, unsigned which) {
    if (!records_) return;
    Value* place = at.CreateInBoundsGEP(counters_->getValueType(), counters_,
                                        {at.getInt64(0), at.getInt64(guard), at.getInt64(which)});
    // Threads count together.
    at.CreateAtomicRMW(llvm::AtomicRMWInst::Add, place, at.getInt64(1), llvm::Align(8),
                       llvm::AtomicOrdering::Monotonic);
  }

  void insert(const Guard& guard, const Look& look, Value* address, std::size_t number, bool is_first) {
    llvm::IRBuilder<> at(look.before);
    at.SetCurrentDebugLocation(place_of(guard));
    if (is_first) count(at, number, 0);
    if (look.step != 0) {
      const auto size = static_cast<std::uint32_t>(std::abs(look.step));
      branch(at, enters_page(at, address, look.step), size, static_cast<std::uint32_t>(kPageBytes) - size);
    }
    const View view = look.around != nullptr ? views_.find(look.around)->second : read_range(at);
    Value* offset = at.CreateSub(address, view.begin, "farheap.offset");
    Value* is_in_view = at.CreateICmpULT(offset, view.bytes);
    branch(at, is_in_view, kInViewWeight, kNotInViewWeight);
    Value* away = view.away != nullptr ? view.away : read_away(at);
    llvm::LoadInst* state =
        at.CreateAlignedLoad(at.getInt8Ty(), at.CreateGEP(at.getInt8Ty(), away, at.CreateLShr(offset, kPageShift)),
                             llvm::Align(1), "farheap.away");
    state->setAtomic(llvm::AtomicOrdering::Monotonic);
    Value* is_away = at.CreateICmpNE(state, at.getInt8(0));
    branch(at, is_away, kAwayWeight, kHereWeight);
    count(at, number, 1);
    Value* where =
        look.pointer != nullptr && look.ahead == 0 ? look.pointer : at.CreateIntToPtr(address, at.getPtrTy());
    llvm::CallInst* call = at.CreateCall(slow_, {where, at.getInt32(guard.writes ? 1 : 0)});
    call->setCallingConv(slow_->getCallingConv());
  }

  struct Note {
    llvm::DebugLoc where;
    std::uint64_t guards = 0, accesses = 0;
  };

  llvm::Function& function_;
  const bool records_;
  GuardProfile* profile_;
  Report& report_;
  std::uint64_t shape_ = 0;
  llvm::LoopInfo& loops_;
  llvm::DominatorTree& dominators_;
  llvm::ScalarEvolution& evolution_;
  llvm::TargetTransformInfo& costs_;
  llvm::DomTreeUpdater updater_;
  llvm::IntegerType* word_;
  llvm::SCEVExpander expander_;
  llvm::GlobalVariable* view_ = nullptr;
  llvm::GlobalVariable* counters_ = nullptr;
  llvm::Function* slow_ = nullptr;
  llvm::DenseMap<const llvm::Loop*, View> views_;
  std::map<std::tuple<unsigned, std::string, std::string>, Note> notes_;
};

}  // namespace

bool guard_accesses(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, const Settings& settings,
                    GuardProfile* profile, const Touches& evenly, Report& report) {
  return Inserter(function, analyses, settings, profile, report).run(evenly);
}

}  // namespace farheap::passes
