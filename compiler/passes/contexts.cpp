// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: the program computes what it did. What is inserted reads and writes the runtime's memory and registers of
// its own; a register that is lost when a frame is left another way than by returning has nothing in it then.
#include "contexts.hpp"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <map>
#include <utility>

#include "context_plan.hpp"

namespace farheap::passes {
namespace {

using llvm::BasicBlock;
using llvm::Constant;
using llvm::Instruction;
using llvm::Value;

// Of compiler/contexts/nodes.hpp, whose static_asserts name this list.
constexpr std::uint64_t kNodeBytes = 128, kSlotBytes = 32;
constexpr std::uint64_t kCachedPlace = 0, kCachedChild = 8, kEntries = 16, kReads = 24, kWrites = 32, kTicks = 40,
                        kUntil = 48, kPlace = 72;
constexpr std::uint64_t kTag = 0, kSlotReads = 8, kSlotWrites = 16;
constexpr std::uint64_t kCurrent = 0, kLast = 8;

constexpr unsigned kMostTurnInstructions = 16;  // to compute the turns of a loop, by the measure of LLVM's expander

// Puts instructions before another one. Calls of functions that may be inlined have to have a line, be it none.
class Builder : public llvm::IRBuilder<> {
 public:
  explicit Builder(Instruction* at) : llvm::IRBuilder<>(at) {
    llvm::DISubprogram* known = at->getFunction()->getSubprogram();
    if (at->getDebugLoc() || known == nullptr) return;
    SetCurrentDebugLocation(llvm::DILocation::get(at->getContext(), 0, 0, known));
  }
};

class Inserter {
 public:
  Inserter(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : function_(function),
        module_(*function.getParent()),
        context_(function.getContext()),
        plan_(plan_contexts(function, analyses)),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        costs_(analyses.getResult<llvm::TargetIRAnalysis>(function)),
        word_(llvm::Type::getInt64Ty(context_)),
        pointer_(llvm::PointerType::getUnqual(context_)),
#if LLVM_VERSION_MAJOR >= 22
        expander_(evolution_, "farheap") {
  }
#else
        expander_(evolution_, module_.getDataLayout(), "farheap") {
  }
#endif

  ContextPlan& plan() { return plan_; }

  // In this order: what is computed from analyses comes before blocks are split.
  void run() {
    gather_places();
    compute_turns();
    make_place();
    enter();
    for (QuietNest& nest : plan_.nests) count(nest);
    for (const CountedLoop& loop : plan_.counted) {
      if (loop.nest < 0) begin_loud(loop);
    }
    // Inner loops end before outer ones do.
    for (auto loop = plan_.counted.rbegin(); loop != plan_.counted.rend(); ++loop) {
      if (loop->nest < 0) end_loud(*loop);
    }
    for (const Sum& sum : plan_.sums) add(sum);
    for (std::size_t i = 0; i < plan_.calls.size(); ++i) tell(*plan_.calls[i], call_contexts_[i]);
    leave();
    llvm::DominatorTree dominators(function_);
    llvm::PromoteMemToReg(registers_, dominators);
  }

  [[nodiscard]] std::uint64_t loops_by_turns() const { return turns_.size(); }

 private:
  // Places in the program are instructions that stay where they are when blocks are split around them.
  struct Edges {
    Instruction* before = nullptr;    // the loop
    std::vector<Instruction*> after;  // it, wherever it ends
  };

  void gather_places() {
    const auto gather = [&](llvm::Loop* loop) {
      Edges& edges = edges_[loop];
      if (edges.before != nullptr) return;  // it is counted, and a nest by itself
      edges.before = loop->getLoopPreheader()->getTerminator();
      llvm::SmallVector<BasicBlock*, 8> exits;
      loop->getUniqueExitBlocks(exits);
      for (BasicBlock* exit : exits) edges.after.push_back(&*exit->getFirstInsertionPt());
    };
    for (const CountedLoop& loop : plan_.counted) gather(loop.loop);
    for (const QuietNest& nest : plan_.nests) gather(nest.loop);
    for (const auto& block : function_) {
      // A call that becomes a jump, and what it returns.
      for (const Instruction& instruction : block) {
        if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction); call != nullptr && is_last(*call)) {
          last_calls_[block.getTerminator()] = const_cast<llvm::CallInst*>(call);
        }
      }
    }
    for (llvm::CallBase* call : plan_.calls) call_contexts_.push_back(plan_.contexts.lookup(call->getParent()));
    for (BasicBlock& block : function_) {
      Instruction* end = block.getTerminator();
      if (llvm::isa<llvm::ReturnInst, llvm::ResumeInst>(end)) ends_.push_back(end);
    }
  }

  // Whether code behind the call would cost the program stack that it does not expect to need.
  bool is_last(const llvm::CallInst& call) const {
    if (call.isMustTailCall()) return true;
    if (!call.isTailCall() || function_.hasAddressTaken()) return false;
    const Instruction* next = call.getNextNode();
    const auto* end = llvm::dyn_cast_or_null<llvm::ReturnInst>(next);
    return end != nullptr && (end->getReturnValue() == nullptr || end->getReturnValue() == &call) &&
           llvm::is_contained(plan_.calls, &call);
  }

  void compute_turns() {
    for (QuietNest& nest : plan_.nests) {
      for (Sum& sum : nest.sums) {
        if (sum.counts_turns == nullptr || turns_.count(sum.counts_turns) != 0) continue;
        llvm::Loop* loop = const_cast<llvm::Loop*>(sum.counts_turns);
        const llvm::SCEV* back = evolution_.getBackedgeTakenCount(loop);
        Instruction* before = loop->getLoopPreheader()->getTerminator();
        if (back->getType()->getIntegerBitWidth() > 64 || !expander_.isSafeToExpandAt(back, before) ||
            expander_.isHighCostExpansion({back}, loop, kMostTurnInstructions, &costs_, before)) {
          sum.counts_turns = nullptr;
          continue;
        }
        Value* known = expander_.expandCodeFor(back, back->getType(), before->getIterator());
        Builder at(before);
        turns_[loop] = at.CreateAdd(at.CreateZExt(at.CreateFreeze(known), word_), at.getInt64(1), "farheap.turns");
        turn_places_[loop] = before;
      }
    }
  }

  // ---- constants

  Constant* text(const std::string& words) {
    Constant* bytes = llvm::ConstantDataArray::getString(context_, words);
    auto* made = new llvm::GlobalVariable(module_, bytes->getType(), true, llvm::GlobalValue::PrivateLinkage, bytes,
                                          "farheap_context_text");
    made->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return made;
  }

  Constant* number(std::uint64_t value, unsigned bits = 32) {
    return llvm::ConstantInt::get(llvm::Type::getIntNTy(context_, bits), value);
  }

  // The layout is that of Place and LoopPlace in compiler/contexts/nodes.hpp.
  void make_place() {
    llvm::Type* half = llvm::Type::getInt32Ty(context_);
    auto* loop_type = llvm::StructType::get(context_, {pointer_, pointer_, half, half, half, half});
    std::vector<Constant*> rows;
    rows.reserve(plan_.loops.size());
    for (const LoopContext& loop : plan_.loops) {
      rows.push_back(
          llvm::ConstantStruct::get(loop_type, {text(loop.function), text(loop.file), number(loop.line),
                                                number(loop.parent), number(loop.is_quiet ? 1 : 0), number(0)}));
    }
    auto* list_type = llvm::ArrayType::get(loop_type, rows.size());
    auto* list = new llvm::GlobalVariable(module_, list_type, true, llvm::GlobalValue::PrivateLinkage,
                                          llvm::ConstantArray::get(list_type, rows), "farheap_context_loops");
    std::vector<Constant*> slots;
    slots.reserve(plan_.slot_contexts.size());
    for (const unsigned context : plan_.slot_contexts) slots.push_back(number(context));
    auto* slots_type = llvm::ArrayType::get(half, slots.size());
    auto* slot_list = new llvm::GlobalVariable(module_, slots_type, true, llvm::GlobalValue::PrivateLinkage,
                                               llvm::ConstantArray::get(slots_type, slots), "farheap_context_slots");
    const llvm::DISubprogram* known = function_.getSubprogram();
    const std::string file = known != nullptr ? known->getFilename().str() : module_.getSourceFileName();
    auto* type = llvm::StructType::get(context_, {pointer_, pointer_, half, half, half, half, pointer_, pointer_});
    Constant* row = llvm::ConstantStruct::get(
        type, {text(llvm::demangle(function_.getName())), text(file), number(known != nullptr ? known->getLine() : 0),
               number(plan_.is_quiet ? 1 : 0), number(plan_.loops.size()), number(plan_.slot_contexts.size()), list,
               slot_list});
    place_ =
        new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage, row, "farheap_context_place");
    place_->setAlignment(llvm::Align(8));
  }

  // ---- small steps

  static Builder before(Instruction* at) { return Builder(at); }

  Value* field(Builder& at, Value* base, std::uint64_t offset) {
    return offset == 0 ? base : at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), base, offset);
  }
  Value* node(Builder& at, unsigned context) { return field(at, me_, context * kNodeBytes); }
  Value* slot(Builder& at, unsigned slot) {
    return field(at, me_, (1 + plan_.loops.size()) * kNodeBytes + slot * kSlotBytes);
  }
  Value* load(Builder& at, Value* base, std::uint64_t offset) {
    return at.CreateAlignedLoad(word_, field(at, base, offset), llvm::Align(8));
  }
  void store(Builder& at, Value* value, Value* base, std::uint64_t offset) {
    at.CreateAlignedStore(value, field(at, base, offset), llvm::Align(8));
  }
  void add(Builder& at, Value* base, std::uint64_t offset, Value* more) {
    store(at, at.CreateAdd(load(at, base, offset), more), base, offset);
  }
  // weight * times; nullptr for nothing.
  Value* product(Builder& at, std::uint64_t weight, Value* times) {
    if (weight == 0) return nullptr;
    if (times == nullptr) return at.getInt64(weight);
    return weight == 1 ? times : at.CreateMul(times, at.getInt64(weight));
  }
  void add_times(Builder& at, Value* base, std::uint64_t offset, std::uint64_t weight, Value* times) {
    if (Value* more = product(at, weight, times)) add(at, base, offset, more);
  }
  Value* clock(Builder& at) {
    return at.CreateIntrinsic(llvm::Intrinsic::readcyclecounter, llvm::ArrayRef<llvm::Type*>{},
                              llvm::ArrayRef<Value*>{});
  }
  // Of the thread: which context it is in, and when the clock was read last.
  Value* thread(Builder& at) {
    auto* known = module_.getGlobalVariable("__farheap_context");
    if (known == nullptr) {
      known = new llvm::GlobalVariable(module_, llvm::StructType::get(context_, {pointer_, word_}), false,
                                       llvm::GlobalValue::ExternalLinkage, nullptr, "__farheap_context", nullptr,
                                       llvm::GlobalValue::InitialExecTLSModel);
      known->setAlignment(llvm::Align(16));
    }
    return at.CreateThreadLocalAddress(known);
  }
  llvm::FunctionCallee runtime(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> arguments) {
    llvm::FunctionCallee known = module_.getOrInsertFunction(name, llvm::FunctionType::get(result, arguments, false));
    auto* function = llvm::cast<llvm::Function>(known.getCallee());
    function->addFnAttr(llvm::Attribute::NoUnwind);
    function->addFnAttr(llvm::Attribute::Cold);
    return known;
  }
  llvm::AllocaInst* make_register(llvm::Type* type, const char* name) {
    Builder at(&*function_.getEntryBlock().begin());
    auto* made = at.CreateAlloca(type, nullptr, name);
    registers_.push_back(made);
    return made;
  }
  // The builder goes on behind what is done if the condition holds; returns where that is to be put.
  Instruction* branch(Builder& at, Value* condition) {
    llvm::MDNode* seldom = llvm::MDBuilder(context_).createBranchWeights(1, 2000);
    Instruction* go_on = &*at.GetInsertPoint();
    Instruction* then = llvm::SplitBlockAndInsertIfThen(condition, go_on->getIterator(), false, seldom);
    at.SetInsertPoint(go_on);
    return then;
  }

  // ---- the function

  // Static allocas stay in the entry block, or they would take stack at each turn of a loop around.
  Instruction* begin_of_entry() {
    BasicBlock& entry = function_.getEntryBlock();
    Instruction* first = &*entry.getFirstInsertionPt();
    std::vector<Instruction*> allocas;
    for (Instruction& instruction : entry) {
      const auto* made = llvm::dyn_cast<llvm::AllocaInst>(&instruction);
      if (made != nullptr && llvm::isa<llvm::Constant>(made->getArraySize())) allocas.push_back(&instruction);
    }
    for (Instruction* made : allocas) {
      if (made == first) {
        first = first->getNextNode();
      } else {
        made->moveBefore(entry, first->getIterator());
      }
    }
    return first;
  }

  void enter() {
    Instruction* first = begin_of_entry();
    Builder at = before(first);
    Value* own = thread(at);
    outer_ = at.CreateAlignedLoad(pointer_, field(at, own, kCurrent), llvm::Align(8), "farheap.outer");
    // A signal handler may come between the two loads, and leave another child: of what is cached, a child's own place
    // is what counts. (In this order, because a cached place has a child.)
    constexpr bool kIsVolatile = true;
    Value* place = at.CreateAlignedLoad(pointer_, field(at, outer_, kCachedPlace), llvm::Align(8), kIsVolatile);
    Value* child = at.CreateAlignedLoad(pointer_, field(at, outer_, kCachedChild), llvm::Align(8), kIsVolatile);
    Value* is_cached = at.CreateICmpEQ(place, place_);
    Value* node = at.CreateSelect(is_cached, child, outer_);
    Value* of_node = at.CreateAlignedLoad(pointer_, field(at, node, kPlace), llvm::Align(8));
    BasicBlock* here = at.GetInsertBlock();
    Instruction* then = branch(at, at.CreateNot(at.CreateAnd(is_cached, at.CreateICmpEQ(of_node, place_))));
    Builder slow = before(then);
    Value* found = slow.CreateCall(runtime("__farheap_context_enter", pointer_, {pointer_}), {place_});
    auto* me = at.CreatePHI(pointer_, 2, "farheap.context");
    me->addIncoming(child, here);
    me->addIncoming(found, then->getParent());
    me_ = me;
    add(at, me_, kEntries, at.getInt64(1));
    if (plan_.is_quiet) {
      started_ = make_register(word_, "farheap.started");
      begin_timed(at, me_, nullptr, started_);
    } else {
      spend(at, outer_);
    }
  }

  // Wherever it returns to its caller, or what unwinds goes on there.
  void leave() {
    for (Instruction* end : ends_) {
      const auto last = last_calls_.find(end);
      Builder at = before(last != last_calls_.end() ? last->second : end);
      if (plan_.is_quiet) {
        end_timed(at, me_, started_);
        continue;
      }
      spend(at, me_);
      // The context of a call that becomes a jump is below this one. Who called has stored its own before it calls
      // again.
      if (last == last_calls_.end()) at.CreateAlignedStore(outer_, field(at, thread(at), kCurrent), llvm::Align(8));
    }
  }

  void tell(llvm::CallBase& call, unsigned context) {
    Builder at = before(&call);
    at.CreateAlignedStore(node(at, context), field(at, thread(at), kCurrent), llvm::Align(8));
  }

  // The time since the clock was read last was the context's.
  void spend(Builder& at, Value* in) {
    Value* now = clock(at);
    Value* own = thread(at);
    add(at, in, kTicks, at.CreateSub(now, load(at, own, kLast)));
    store(at, now, own, kLast);
  }

  void begin_loud(const CountedLoop& loop) {
    Builder begin = before(edges_[loop.loop].before);
    Value* inside = node(begin, loop.context);
    const unsigned around = plan_.loops[loop.context - 1].parent;
    add(begin, inside, kEntries, begin.getInt64(1));
    spend(begin, node(begin, around));
  }

  void end_loud(const CountedLoop& loop) {
    for (Instruction* after : edges_[loop.loop].after) {
      Builder end = before(after);
      spend(end, node(end, loop.context));
    }
  }

  void add(const Sum& sum) {
    Builder at = before(sum.at);
    for (const Weight& weight : sum.weights) {
      Value* to = node(at, weight.context);
      add_times(at, to, kReads, weight.reads, sum.times);
      add_times(at, to, kWrites, weight.writes, sum.times);
    }
    for (const ObjectUse& use : sum.uses) {
      add_use(at, use.slot, use.pointer, product(at, use.reads, sum.times), product(at, use.writes, sum.times));
    }
  }

  // Accesses are added up while the pointer stays the same.
  void add_use(Builder& at, unsigned number, Value* pointer, Value* reads, Value* writes) {
    auto* epoch = module_.getOrInsertGlobal("__farheap_objects_epoch", word_);
    Value* to = slot(at, number);
    Value* address = at.CreatePtrToInt(pointer, word_);
    Value* tag = at.CreateXor(address, at.CreateAlignedLoad(word_, epoch, llvm::Align(8)));
    Instruction* then = branch(at, at.CreateICmpNE(tag, load(at, to, kTag)));
    Builder slow = before(then);
    slow.CreateCall(
        runtime("__farheap_context_object", llvm::Type::getVoidTy(context_), {pointer_, pointer_, word_, word_}),
        {node(slow, plan_.slot_contexts[number]), slot(slow, number), address, tag});
    if (reads != nullptr) add(at, to, kSlotReads, reads);
    if (writes != nullptr) add(at, to, kSlotWrites, writes);
  }

  // ---- visits that are timed: some of them

  // `until` is the register in which a nest keeps the node's; nullptr: it is in memory.
  void begin_timed(Builder& at, Value* in, llvm::AllocaInst* until, llvm::AllocaInst* started) {
    Value* left = until != nullptr ? at.CreateLoad(word_, until) : load(at, in, kUntil);
    left = at.CreateSub(left, at.getInt64(1));
    if (until != nullptr) {
      at.CreateStore(left, until);
    } else {
      store(at, left, in, kUntil);
    }
    at.CreateStore(at.getInt64(0), started);
    Instruction* then = branch(at, at.CreateIsNull(left));
    Builder slow = before(then);
    slow.CreateStore(slow.CreateCall(runtime("__farheap_context_begin", word_, {pointer_}), {in}), started);
    if (until != nullptr) slow.CreateStore(load(slow, in, kUntil), until);
  }

  void end_timed(Builder& at, Value* in, llvm::AllocaInst* started) {
    Value* start = at.CreateLoad(word_, started);
    Instruction* then = branch(at, at.CreateIsNotNull(start));
    Builder slow = before(then);
    slow.CreateCall(runtime("__farheap_context_end", llvm::Type::getVoidTy(context_), {pointer_, word_}), {in, start});
  }

  // ---- quiet nests

  struct Inner {
    const CountedLoop* loop;
    llvm::AllocaInst* until;
    llvm::AllocaInst* started;
  };

  void count(QuietNest& nest) {
    const Edges& edges = edges_[nest.loop];
    std::vector<Inner> inner;
    const CountedLoop* own = nullptr;
    for (const CountedLoop& loop : plan_.counted) {
      if (loop.nest < 0 || &plan_.nests[static_cast<std::size_t>(loop.nest)] != &nest) continue;
      if (loop.loop == nest.loop) {
        own = &loop;
      } else {
        inner.push_back({&loop, make_register(word_, "farheap.until"), make_register(word_, "farheap.started")});
      }
    }
    std::vector<llvm::AllocaInst*> counters;
    counters.reserve(nest.sums.size());
    for (std::size_t i = 0; i < nest.sums.size(); ++i) counters.push_back(make_register(word_, "farheap.count"));
    llvm::DenseMap<unsigned, llvm::AllocaInst*> pointers;
    for (const QuietNest::Used& used : nest.used) {
      llvm::AllocaInst*& kept = pointers[used.slot];
      if (kept == nullptr) kept = make_register(pointer_, "farheap.object");
    }

    Builder begin = before(edges.before);
    for (llvm::AllocaInst* counter : counters) begin.CreateStore(begin.getInt64(0), counter);
    for (const auto& [number, kept] : pointers) begin.CreateStore(llvm::ConstantPointerNull::get(pointer_), kept);
    for (const Inner& one : inner) begin.CreateStore(load(begin, node(begin, one.loop->context), kUntil), one.until);
    llvm::AllocaInst* started = nullptr;
    if (own != nullptr) {
      started = make_register(word_, "farheap.started");
      begin_timed(begin, node(begin, own->context), nullptr, started);
    }

    for (const QuietNest::Used& used : nest.used) {
      Builder at = before(used.at);
      at.CreateStore(used.pointer, pointers[used.slot]);
    }
    for (std::size_t i = 0; i < nest.sums.size(); ++i) count(nest.sums[i], counters[i]);
    for (const Inner& one : inner) {
      const Edges& its = edges_[one.loop->loop];
      Builder at = before(its.before);
      begin_timed(at, node(at, one.loop->context), one.until, one.started);
    }
    for (auto one = inner.rbegin(); one != inner.rend(); ++one) {
      for (Instruction* after : edges_[one->loop->loop].after) {
        Builder at = before(after);
        end_timed(at, node(at, one->loop->context), one->started);
      }
    }
    for (Instruction* after : edges.after) {
      Builder at = before(after);
      if (own != nullptr) {
        end_timed(at, node(at, own->context), started);
        add(at, node(at, own->context), kEntries, at.getInt64(1));
      }
      for (const Inner& one : inner) {
        store(at, at.CreateLoad(word_, one.until), node(at, one.loop->context), kUntil);
      }
      add_all(at, nest, counters, pointers);
    }
  }

  void count(const Sum& sum, llvm::AllocaInst* counter) {
    const bool by_turns = sum.counts_turns != nullptr;
    Builder at = before(by_turns ? turn_places_[sum.counts_turns] : sum.at);
    Value* more = by_turns ? turns_[sum.counts_turns] : sum.times != nullptr ? sum.times : at.getInt64(1);
    at.CreateStore(at.CreateAdd(at.CreateLoad(word_, counter), more), counter);
  }

  // What a nest has counted, to each of its contexts and pointers once.
  void add_all(Builder& at, const QuietNest& nest, const std::vector<llvm::AllocaInst*>& counters,
               const llvm::DenseMap<unsigned, llvm::AllocaInst*>& pointers) {
    std::map<std::pair<unsigned, std::uint64_t>, Value*> totals;
    struct Used {
      Value* pointer = nullptr;
      Value* reads = nullptr;
      Value* writes = nullptr;
    };
    std::map<unsigned, Used> uses;
    const auto plus = [&](Value*& to, Value* more) {
      if (more != nullptr) to = to == nullptr ? more : at.CreateAdd(to, more);
    };
    for (std::size_t i = 0; i < nest.sums.size(); ++i) {
      Value* times = at.CreateLoad(word_, counters[i]);
      for (const Weight& weight : nest.sums[i].weights) {
        plus(totals[{weight.context, kEntries}], product(at, weight.entries, times));
        plus(totals[{weight.context, kReads}], product(at, weight.reads, times));
        plus(totals[{weight.context, kWrites}], product(at, weight.writes, times));
      }
      for (const ObjectUse& use : nest.sums[i].uses) {
        Used& one = uses[use.slot];
        if (one.pointer == nullptr) one.pointer = use.pointer;
        plus(one.reads, product(at, use.reads, times));
        plus(one.writes, product(at, use.writes, times));
      }
    }
    for (const auto& [where, more] : totals) {
      if (more != nullptr) add(at, node(at, where.first), where.second, more);
    }
    for (auto& [number, use] : uses) {
      if (const auto kept = pointers.find(number); kept != pointers.end()) {
        use.pointer = at.CreateLoad(pointer_, kept->second);
      }
      add_use(at, number, use.pointer, use.reads, use.writes);
    }
  }

  llvm::Function& function_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  ContextPlan plan_;
  llvm::ScalarEvolution& evolution_;
  llvm::TargetTransformInfo& costs_;
  llvm::IntegerType* word_;
  llvm::PointerType* pointer_;
  llvm::SCEVExpander expander_;
  llvm::GlobalVariable* place_ = nullptr;
  Value* outer_ = nullptr;  // the context of the caller
  Value* me_ = nullptr;
  llvm::AllocaInst* started_ = nullptr;  // of a quiet function
  std::vector<llvm::AllocaInst*> registers_;
  llvm::DenseMap<const llvm::Loop*, Edges> edges_;
  llvm::DenseMap<const llvm::Loop*, Value*> turns_;
  llvm::DenseMap<const llvm::Loop*, Instruction*> turn_places_;
  llvm::DenseMap<const Instruction*, llvm::CallInst*> last_calls_;  // by the return behind it
  std::vector<unsigned> call_contexts_;                             // of plan_.calls
  std::vector<Instruction*> ends_;
};

const Instruction* before_debug(const Instruction& at) {
  const Instruction* one = at.getPrevNode();
  while (one != nullptr && one->isDebugOrPseudoInst()) one = one->getPrevNode();
  return one;
}

// Calls whose value several ways return become jumps later, when the return is copied to each: it is copied now.
bool copy_returns(llvm::Function& function) {
  if (function.hasOptNone()) return false;
  std::vector<std::pair<llvm::ReturnInst*, BasicBlock*>> found;
  for (BasicBlock& block : function) {
    const auto* jump = llvm::dyn_cast<llvm::BranchInst>(block.getTerminator());
    if (jump == nullptr || jump->isConditional()) continue;
    const auto* call = llvm::dyn_cast_or_null<llvm::CallInst>(before_debug(*jump));
    BasicBlock* next = jump->getSuccessor(0);
    auto* end = llvm::dyn_cast<llvm::ReturnInst>(next->getTerminator());
    if (end != nullptr && !llvm::all_of(*next, [&](const Instruction& one) {
          return &one == end || llvm::isa<llvm::PHINode>(one) || one.isDebugOrPseudoInst();
        })) {
      continue;
    }
    if (call == nullptr || !call->isTailCall() || end == nullptr || next == &block) continue;
    const Value* value = end->getReturnValue();
    const auto* chosen = llvm::dyn_cast_or_null<llvm::PHINode>(value);
    const bool is_its = value == nullptr || (chosen != nullptr && chosen->getParent() == next &&
                                             chosen->getIncomingValueForBlock(&block) == call);
    if (is_its) found.emplace_back(end, &block);
  }
  for (const auto& [end, block] : found) llvm::FoldReturnIntoUncondBranch(end, end->getParent(), block);
  return !found.empty();
}

}  // namespace

bool record_contexts(llvm::Function& function, llvm::FunctionAnalysisManager& analyses, Report& report) {
  if (copy_returns(function)) analyses.invalidate(function, llvm::PreservedAnalyses::none());
  Inserter inserter(function, analyses);
  const std::uint64_t loops = inserter.plan().loops.size(), slots = inserter.plan().slot_contexts.size();
  inserter.run();
  report.add(function, {}, "recorded", "contexts",
             {{"loops", loops}, {"by turns", inserter.loops_by_turns()}, {"pointers", slots}});
  return true;
}

}  // namespace farheap::passes
