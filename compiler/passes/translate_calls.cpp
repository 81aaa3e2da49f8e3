// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: a far pointer reaches a function that is not translated only where that function is known to do no more
// than read and write what it is given before it returns; and then as a copy. All others get it as it is: those that
// were translated elsewhere know what to do with it, and for the rest it is a fault with a message, never other data.
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <vector>

#include "translate.hpp"

namespace farheap::passes {
namespace {

using llvm::dyn_cast;
using llvm::isa;
using llvm::Value;

constexpr unsigned kHighestArgument = 31;

bool may_be_far(const Value* value) {
  return value->getType()->isPointerTy() && !isa<llvm::ConstantPointerNull>(value) && !is_near(value);
}

class Caller {
 public:
  Caller(llvm::Function& function, const Settings& settings, Report& report)
      : function_(function),
        module_(*function.getParent()),
        settings_(settings),
        report_(report),
        pointer_(llvm::PointerType::getUnqual(function.getContext())) {}

  void run() {
    std::vector<llvm::Instruction*> all;
    for (llvm::BasicBlock& block : function_) {
      for (llvm::Instruction& instruction : block) all.push_back(&instruction);
    }
    for (llvm::Instruction* instruction : all) {
      if (auto* call = dyn_cast<llvm::CallBase>(instruction); call != nullptr && !isa<llvm::IntrinsicInst>(call)) {
        look_at(*call);
      }
      rename(*instruction);
    }
  }

 private:
  void look_at(llvm::CallBase& call) {
    if (call.isInlineAsm()) {
      llvm::SmallVector<Value*, 2> pointers;
      for (Value* argument : call.args()) {
        if (may_be_far(argument)) pointers.push_back(argument);
      }
      only_near(call, pointers, "inline assembly that is given a pointer which may be one into the heap",
                "leave the function out with -ffar-leave= if it touches no heap");
      return;
    }
    if (auto* plain = dyn_cast<llvm::CallInst>(&call); plain != nullptr && plain->isMustTailCall()) return;
    copy_values(call);
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr || !callee->isDeclaration() || !far_name_of(callee->getName()).empty()) return;
    if (callee->getName().starts_with("__farheap_")) return;  // the runtime's, which knows far memory
    const std::uint32_t arguments = borrowable(callee->getName()) | (settings_.may_borrow(*callee) ? ~0u : 0u);
    if (arguments != 0) {
      borrow(call, *callee, arguments);
    } else if (llvm::any_of(call.args(), [](const llvm::Use& use) { return may_be_far(use.get()); })) {
      report_.add(function_, call.getDebugLoc(), "passed",
                  "pointers, as they are, to " + llvm::demangle(callee->getName()));
    }
  }

  // A structure that is passed by value is read when the call is made: by code that nobody translates.
  void copy_values(llvm::CallBase& call) {
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      if (!call.isByValArgument(i) || !may_be_far(call.getArgOperand(i))) continue;
      llvm::Type* type = call.getParamByValType(i);
      const std::uint64_t bytes = module_.getDataLayout().getTypeAllocSize(type).getFixedValue();
      llvm::IRBuilder<> entry(&function_.getEntryBlock(), function_.getEntryBlock().getFirstInsertionPt());
      llvm::AllocaInst* copy = entry.CreateAlloca(type, nullptr, "farheap.value");
      if (const llvm::MaybeAlign alignment = call.getParamAlign(i)) {
        copy->setAlignment(std::max(copy->getAlign(), *alignment));
      }
      llvm::IRBuilder<> at(&call);
      at.CreateCall(runtime("__farheap_copy", at.getVoidTy(), {pointer_, pointer_, at.getInt64Ty()}),
                    {copy, call.getArgOperand(i), at.getInt64(bytes)});
      call.setArgOperand(i, copy);
      if (auto* plain = dyn_cast<llvm::CallInst>(&call)) plain->setTailCallKind(llvm::CallInst::TCK_None);
    }
  }

  struct Lent {
    Value* local;
    Value* own;
  };

  void borrow(llvm::CallBase& call, const llvm::Function& callee, std::uint32_t arguments) {
    std::vector<Lent> all;
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      Value* own = call.getArgOperand(i);
      if ((arguments >> std::min(i, kHighestArgument) & 1) == 0 || !may_be_far(own)) continue;
      llvm::IRBuilder<> at(&call);
      Value* local = at.CreateCall(runtime("__farheap_borrow", pointer_, {pointer_}), {own}, "farheap.lent");
      call.setArgOperand(i, local);
      all.push_back({local, own});
    }
    if (all.empty()) return;
    if (isa<llvm::InvokeInst>(call) &&
        (callee.getName() == "qsort" || callee.getName() == "qsort_r" || callee.getName() == "bsearch")) {
      refuse(call, callee.getName() + ", whose comparison may throw, where the exception is waited for",
             "use std::sort or std::lower_bound");
    }
    give_back(call, all);
    report_.add(function_, call.getDebugLoc(), "borrowed", "for " + llvm::demangle(callee.getName()),
                {{"pointers", all.size()}});
  }

  void give_back(llvm::CallBase& call, const std::vector<Lent>& all) {
    llvm::Instruction* after = nullptr;
    if (auto* invoke = dyn_cast<llvm::InvokeInst>(&call)) {
      llvm::BasicBlock* block = llvm::SplitEdge(invoke->getParent(), invoke->getNormalDest());
      after = &*block->getFirstInsertionPt();
    } else {
      after = call.getNextNode();
    }
    llvm::IRBuilder<> at(after);
    at.SetCurrentDebugLocation(call.getDebugLoc());
    if (call.getType()->isPointerTy() && !call.use_empty()) {
      Value* result = &call;
      for (const Lent& one : all) {
        result = at.CreateCall(runtime("__farheap_returned", pointer_, {pointer_, pointer_, pointer_}),
                               {result, one.local, one.own});
      }
      call.replaceUsesWithIf(result, [&](llvm::Use& use) { return !is_ours(use); });
    }
    for (const Lent& one : all) {
      at.CreateCall(runtime("__farheap_return", at.getVoidTy(), {pointer_, pointer_}), {one.local, one.own});
    }
  }

  static bool is_ours(const llvm::Use& use) {
    const auto* call = dyn_cast<llvm::CallInst>(use.getUser());
    return call != nullptr && call->getCalledFunction() != nullptr &&
           call->getCalledFunction()->getName() == "__farheap_returned";
  }

  // Calls, and addresses that are taken.
  void rename(llvm::Instruction& at) {
    auto* call = dyn_cast<llvm::CallBase>(&at);
    for (llvm::Use& use : at.operands()) {
      auto* named = dyn_cast<llvm::Function>(use.get());
      if (named == nullptr || !named->isDeclaration()) continue;
      const llvm::StringRef name = far_name_of(named->getName());
      if (name.empty()) continue;
      llvm::FunctionCallee far = module_.getOrInsertFunction(name, named->getFunctionType());
      use.set(far.getCallee());
      // It is no longer what optimisers know by its name, nor does as little.
      if (call != nullptr && call->isCallee(&use)) call->setAttributes(llvm::AttributeList());
    }
  }

  llvm::FunctionCallee runtime(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> types) {
    return module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  }

  llvm::Function& function_;
  llvm::Module& module_;
  const Settings& settings_;
  Report& report_;
  llvm::PointerType* pointer_;
};

}  // namespace

void translate_calls(llvm::Function& function, const Settings& settings, Report& report) {
  Caller(function, settings, report).run();
}

}  // namespace farheap::passes
