// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: the far and the near way of an access do the same to the program; the copy that a far access goes by is
// one piece of stack for the whole function, and holds nothing between two accesses.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include <algorithm>
#include <vector>

#include "translate.hpp"

namespace farheap::passes {
namespace {

using llvm::dyn_cast;
using llvm::Value;

constexpr std::uint64_t kCopyAlignment = 64;  // of the widest vector
constexpr std::uint64_t kVaListBytes = 24;    // x86-64

class Translator {
 public:
  explicit Translator(llvm::Function& function)
      : function_(function),
        module_(*function.getParent()),
        layout_(module_.getDataLayout()),
        pointer_(llvm::PointerType::getUnqual(function.getContext())),
        word_(llvm::Type::getInt64Ty(function.getContext())) {}

  Translated run() {
    std::vector<llvm::Instruction*> all;
    for (llvm::BasicBlock& block : function_) {
      for (llvm::Instruction& instruction : block) all.push_back(&instruction);
    }
    for (llvm::Instruction* instruction : all) look_at(*instruction);
    return done_;
  }

 private:
  void look_at(llvm::Instruction& at) {
    if (auto* load = dyn_cast<llvm::LoadInst>(&at)) {
      if (wanted(at, load->getPointerOperand(), load->getType())) translate(*load);
    } else if (auto* store = dyn_cast<llvm::StoreInst>(&at)) {
      if (wanted(at, store->getPointerOperand(), store->getValueOperand()->getType())) translate(*store);
    } else if (auto* change = dyn_cast<llvm::AtomicRMWInst>(&at)) {
      if (wanted(at, change->getPointerOperand(), change->getType())) translate(*change);
    } else if (auto* exchange = dyn_cast<llvm::AtomicCmpXchgInst>(&at)) {
      if (wanted(at, exchange->getPointerOperand(), exchange->getNewValOperand()->getType())) translate(*exchange);
    } else if (auto* call = dyn_cast<llvm::IntrinsicInst>(&at)) {
      look_at_intrinsic(*call);
    } else if (at.getOpcode() == llvm::Instruction::VAArg && !is_near(at.getOperand(0))) {
      refuse(at, "a va_arg instruction whose list may be in the heap", "keep the list on the stack");
    }
  }

  bool wanted(llvm::Instruction& at, Value* pointer, llvm::Type* type) {
    if (is_near(pointer)) return false;
    const llvm::TypeSize bytes = layout_.getTypeStoreSize(type);
    if (!bytes.isScalable()) return bytes.getFixedValue() != 0;
    refuse(at, "a vector of a length that only the machine knows", "compile with -fno-vectorize");
    return false;
  }

  void look_at_intrinsic(llvm::IntrinsicInst& call) {
    if (auto* copy = dyn_cast<llvm::MemTransferInst>(&call)) {
      if (is_near(copy->getRawDest()) && is_near(copy->getRawSource())) return;
      replace(call, "__farheap_copy", {copy->getRawDest(), copy->getRawSource(), copy->getLength()});
      return;
    }
    if (auto* fill = dyn_cast<llvm::MemSetInst>(&call)) {
      if (!is_near(fill->getRawDest())) {
        replace(call, "__farheap_fill", {fill->getRawDest(), fill->getValue(), fill->getLength()});
      }
      return;
    }
    if (touches_nothing(call)) return;
    switch (call.getIntrinsicID()) {
      case llvm::Intrinsic::vacopy:
        if (is_near(call.getArgOperand(0)) && is_near(call.getArgOperand(1))) return;
        replace(call, "__farheap_copy",
                {call.getArgOperand(0), call.getArgOperand(1), llvm::ConstantInt::get(word_, kVaListBytes)});
        return;
      case llvm::Intrinsic::vastart:  // a list in the heap is a fault, with words
      case llvm::Intrinsic::stackrestore: return;
      default: break;
    }
    if (call.doesNotAccessMemory() || call.onlyAccessesInaccessibleMemory()) return;
    if (is_of_the_cache(call)) {
      if (!is_near(call.getArgOperand(0))) split(call, call.getArgOperand(0));
      return;
    }
    llvm::SmallVector<Value*, 2> pointers;
    for (Value* argument : call.args()) {
      if (argument->getType()->isPointerTy() && !is_near(argument)) pointers.push_back(argument);
    }
    only_near(call, pointers, "there is no translation of " + call.getCalledFunction()->getName(),
              "write it without, or leave the function out with -ffar-leave= if it touches no heap");
  }

  llvm::FunctionCallee runtime(llvm::StringRef name, llvm::ArrayRef<llvm::Type*> types) {
    return module_.getOrInsertFunction(
        name, llvm::FunctionType::get(llvm::Type::getVoidTy(module_.getContext()), types, false));
  }

  void replace(llvm::CallBase& call, llvm::StringRef name, std::initializer_list<Value*> arguments) {
    llvm::IRBuilder<> at(&call);
    llvm::SmallVector<Value*, 3> values;
    llvm::SmallVector<llvm::Type*, 3> types;
    for (Value* value : arguments) {
      if (value->getType()->isIntegerTy() && value->getType()->getIntegerBitWidth() > 8) {
        value = at.CreateZExtOrTrunc(value, word_);
      }
      values.push_back(value);
      types.push_back(value->getType());
    }
    at.CreateCall(runtime(name, types), values);
    call.eraseFromParent();
    ++done_.copies;
  }

  llvm::AllocaInst* copy_of(llvm::Type* type) {
    const std::uint64_t bytes = layout_.getTypeAllocSize(type).getFixedValue();
    if (copy_ == nullptr) {
      llvm::IRBuilder<> at(&function_.getEntryBlock(), function_.getEntryBlock().getFirstInsertionPt());
      copy_ = at.CreateAlloca(at.getInt8Ty(), at.getInt64(bytes), "farheap.copy");
      copy_bytes_ = 0;
    }
    copy_bytes_ = std::max(copy_bytes_, bytes);
    copy_->setOperand(0, llvm::ConstantInt::get(word_, copy_bytes_));
    copy_->setAlignment(llvm::Align(std::min(kCopyAlignment, llvm::PowerOf2Ceil(copy_bytes_))));
    return copy_;
  }

  Value* bytes_of(llvm::Type* type) {
    return llvm::ConstantInt::get(word_, layout_.getTypeStoreSize(type).getFixedValue());
  }

  // The ends of the far and the near way, `access` moved to the latter; what followed it follows both.
  struct Ways {
    llvm::Instruction* far;
    llvm::Instruction* near;
    llvm::BasicBlock* after;
  };
  Ways split(llvm::Instruction& access, Value* pointer) {
    llvm::IRBuilder<> at(&access);
    Value* is_far = passes::is_far(at, pointer);
    llvm::Instruction* far = nullptr;
    llvm::Instruction* near = nullptr;
    llvm::SplitBlockAndInsertIfThenElse(is_far, access.getIterator(), &far, &near);
    llvm::BasicBlock* after = access.getParent();
    access.moveBefore(*near->getParent(), near->getIterator());
    far->setDebugLoc(access.getDebugLoc());
    near->setDebugLoc(access.getDebugLoc());
    return {far, near, after};
  }

  // Uses of `access` get the value of the way that was gone.
  void join(llvm::Instruction& access, Value* far_value, const Ways& ways) {
    llvm::PHINode* both = llvm::PHINode::Create(access.getType(), 2, "", ways.after->begin());
    both->setDebugLoc(access.getDebugLoc());
    access.replaceAllUsesWith(both);
    both->addIncoming(far_value, ways.far->getParent());
    both->addIncoming(&access, ways.near->getParent());
    both->takeName(&access);
  }

  Value* get(llvm::IRBuilder<>& at, Value* pointer, llvm::Type* type) {
    llvm::AllocaInst* copy = copy_of(type);
    at.CreateCall(runtime("__farheap_get", {pointer_, pointer_, word_}), {copy, pointer, bytes_of(type)});
    return at.CreateAlignedLoad(type, copy, llvm::Align(1));
  }

  void put(llvm::IRBuilder<>& at, Value* pointer, Value* value) {
    llvm::AllocaInst* copy = copy_of(value->getType());
    at.CreateAlignedStore(value, copy, llvm::Align(1));
    at.CreateCall(runtime("__farheap_put", {pointer_, pointer_, word_}), {pointer, copy, bytes_of(value->getType())});
  }

  void lock(llvm::IRBuilder<>& at) { at.CreateCall(runtime("__farheap_lock", {})); }
  void unlock(llvm::IRBuilder<>& at) { at.CreateCall(runtime("__farheap_unlock", {})); }

  void translate(llvm::LoadInst& load) {
    const Ways ways = split(load, load.getPointerOperand());
    llvm::IRBuilder<> at(ways.far);
    if (load.isAtomic()) lock(at);
    Value* value = get(at, load.getPointerOperand(), load.getType());
    if (load.isAtomic()) unlock(at);
    join(load, value, ways);
    ++(load.isAtomic() ? done_.atomics : done_.loads);
  }

  void translate(llvm::StoreInst& store) {
    const Ways ways = split(store, store.getPointerOperand());
    llvm::IRBuilder<> at(ways.far);
    if (store.isAtomic()) lock(at);
    put(at, store.getPointerOperand(), store.getValueOperand());
    if (store.isAtomic()) unlock(at);
    ++(store.isAtomic() ? done_.atomics : done_.stores);
  }

  // Under one lock for all: whoever changes a far word atomically is alone.
  void translate(llvm::AtomicRMWInst& change) {
    const Ways ways = split(change, change.getPointerOperand());
    llvm::IRBuilder<> at(ways.far);
    lock(at);
    Value* before = get(at, change.getPointerOperand(), change.getType());
    put(at, change.getPointerOperand(),
        llvm::buildAtomicRMWValue(change.getOperation(), at, before, change.getValOperand()));
    unlock(at);
    join(change, before, ways);
    ++done_.atomics;
  }

  void translate(llvm::AtomicCmpXchgInst& exchange) {
    const Ways ways = split(exchange, exchange.getPointerOperand());
    llvm::IRBuilder<> at(ways.far);
    llvm::Type* type = exchange.getNewValOperand()->getType();
    lock(at);
    Value* before = get(at, exchange.getPointerOperand(), type);
    Value* is_same = at.CreateICmpEQ(before, exchange.getCompareOperand());
    put(at, exchange.getPointerOperand(), at.CreateSelect(is_same, exchange.getNewValOperand(), before));
    unlock(at);
    Value* pair = at.CreateInsertValue(llvm::PoisonValue::get(exchange.getType()), before, 0);
    join(exchange, at.CreateInsertValue(pair, is_same, 1), ways);
    ++done_.atomics;
  }

  llvm::Function& function_;
  llvm::Module& module_;
  const llvm::DataLayout& layout_;
  llvm::PointerType* pointer_;
  llvm::IntegerType* word_;
  llvm::AllocaInst* copy_ = nullptr;
  std::uint64_t copy_bytes_ = 0;
  Translated done_;
};

}  // namespace

Translated translate_accesses(llvm::Function& function) { return Translator(function).run(); }

}  // namespace farheap::passes
