// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -ffar-stack: what a function has on its stack is a frame of a far stack, of which each thread has one
// (compiler/runtime/stack.cpp). A frame is pushed at the entry, and popped at each return.
//
// Invariant: in the function, the far stack ends where its frame does, or behind what it allocated dynamically. Where
// others may have left frames behind, after a landing pad and after a call that returns twice, the end is set again.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/Alignment.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>
#include <vector>

#include "translate.hpp"

namespace farheap::passes {
namespace {

using llvm::dyn_cast;
using llvm::isa;
using llvm::Value;

class FarStack {
 public:
  FarStack(llvm::Function& function, const Settings& settings, Report& report)
      : function_(function),
        module_(*function.getParent()),
        layout_(module_.getDataLayout()),
        settings_(settings),
        report_(report),
        pointer_(llvm::PointerType::getUnqual(function.getContext())),
        word_(llvm::Type::getInt64Ty(function.getContext())) {}

  void run() {
    copy_values();
    collect();
    if (fixed_.empty() && dynamic_.empty() && left_behind_.empty()) return;
    push_frame();
    for (llvm::AllocaInst* one : dynamic_) push(*one);
    if (!dynamic_.empty()) follow_marks();
    for (llvm::Instruction* at : left_behind_) pop_to_end(*after(*at));
    for (llvm::ReturnInst* end : returns_) pop_frame(*end);
    report_.add(function_, {}, "far stack", "", {{"variables", fixed_.size() + dynamic_.size()}, {"bytes", bytes_}});
  }

 private:
  // Structures that were passed by value lie on the caller's local stack.
  void copy_values() {
    for (llvm::Argument& argument : function_.args()) {
      if (!argument.hasByValAttr() || argument.use_empty()) continue;
      llvm::Type* type = argument.getParamByValType();
      llvm::IRBuilder<> at(&function_.getEntryBlock(), function_.getEntryBlock().getFirstInsertionPt());
      llvm::AllocaInst* own = at.CreateAlloca(type, nullptr, argument.getName());
      own->setAlignment(std::max(own->getAlign(), argument.getParamAlign().valueOrOne()));
      argument.replaceAllUsesWith(own);
      at.CreateMemCpy(own, own->getAlign(), &argument, argument.getParamAlign(), layout_.getTypeAllocSize(type));
    }
  }

  // By an exception or longjmp(), from frames that were not left by themselves.
  static bool is_come_back_to(const llvm::Instruction& at) {
    const auto* call = dyn_cast<llvm::CallBase>(&at);
    return isa<llvm::LandingPadInst>(at) || (call != nullptr && call->hasFnAttr(llvm::Attribute::ReturnsTwice));
  }

  void collect() {
    for (llvm::BasicBlock& block : function_) {
      for (llvm::Instruction& instruction : block) {
        if (auto* local = dyn_cast<llvm::AllocaInst>(&instruction)) {
          take(*local);
        } else if (auto* end = dyn_cast<llvm::ReturnInst>(&instruction)) {
          returns_.push_back(end);
        } else if (is_come_back_to(instruction)) {
          left_behind_.push_back(&instruction);
        }
      }
    }
    if (is_dynamic_local_) dynamic_.clear();
  }

  void take(llvm::AllocaInst& local) {
    std::string why;
    if (local.isSwiftError() || local.isUsedWithInAlloca() || local.getAddressSpace() != 0 ||
        layout_.getTypeAllocSize(local.getAllocatedType()).isScalable()) {
      why = "it is of a kind that has to be on the stack";
    } else if (is_of_a_library(local.getAllocatedType())) {
      why = "it is of a library's type, which only its own functions touch";
    } else {
      why = why_local(local, settings_);
    }
    if (why.empty()) {
      const auto bytes = local.getAllocationSize(layout_);
      if (local.isStaticAlloca() && bytes) {
        fixed_.push_back({&local, bytes->getFixedValue()});
      } else {
        dynamic_.push_back(&local);
      }
      return;
    }
    // Marks of the stack are for all that is allocated dynamically, or for nothing.
    if (!local.isStaticAlloca()) is_dynamic_local_ = true;
    const std::string name = local.hasName() ? local.getName().str() + " " : std::string();
    report_.add(function_, local.getDebugLoc(), "local", name + "stays on the stack: " + why);
  }

  static llvm::Instruction* after(llvm::Instruction& at) {
    if (isa<llvm::LandingPadInst>(at)) return &*at.getParent()->getFirstInsertionPt();
    auto* invoke = dyn_cast<llvm::InvokeInst>(&at);
    if (invoke == nullptr) return at.getNextNode();
    return &*llvm::SplitEdge(invoke->getParent(), invoke->getNormalDest())->getFirstInsertionPt();
  }

  void push_frame() {
    llvm::Align alignment;
    std::vector<std::uint64_t> places;
    for (const Fixed& one : fixed_) {
      bytes_ = llvm::alignTo(bytes_, one.local->getAlign());
      places.push_back(bytes_);
      bytes_ += one.bytes;
      alignment = std::max(alignment, one.local->getAlign());
    }
    llvm::IRBuilder<> at(&function_.getEntryBlock(), function_.getEntryBlock().getFirstInsertionPt());
    frame_ = push(at, at.getInt64(bytes_), alignment, "farheap.frame");
    end_ = at.CreateConstGEP1_64(at.getInt8Ty(), frame_, bytes_, "farheap.end");
    if (!dynamic_.empty()) {
      last_ = at.CreateAlloca(pointer_, nullptr, "farheap.last");
      at.CreateStore(end_, last_);
    }
    for (std::size_t i = 0; i < fixed_.size(); ++i) {
      replace(*fixed_[i].local, at.CreateConstGEP1_64(at.getInt8Ty(), frame_, places[i]));
    }
    // Not before: code is put before the first of them.
    for (const Fixed& one : fixed_) one.local->eraseFromParent();
  }

  void push(llvm::AllocaInst& local) {
    llvm::IRBuilder<> at(&local);
    Value* count = at.CreateZExtOrTrunc(local.getArraySize(), word_);
    Value* bytes = at.CreateMul(count, at.getInt64(layout_.getTypeAllocSize(local.getAllocatedType()).getFixedValue()));
    Value* begin = push(at, bytes, local.getAlign(), "");
    at.CreateStore(at.CreateGEP(at.getInt8Ty(), begin, bytes), last_);
    replace(local, begin);
    local.eraseFromParent();
  }

  llvm::CallInst* push(llvm::IRBuilder<>& at, Value* bytes, llvm::Align alignment, const char* name) {
    return at.CreateCall(runtime("__farheap_push", pointer_, {word_, word_}), {bytes, at.getInt64(alignment.value())},
                         name);
  }

  static void replace(llvm::AllocaInst& local, Value* far) {
    // How long it lives is said of the stack only.
    for (llvm::User* user : llvm::make_early_inc_range(local.users())) {
      if (auto* call = dyn_cast<llvm::IntrinsicInst>(user); call != nullptr && call->isLifetimeStartOrEnd()) {
        call->eraseFromParent();
      }
    }
    far->takeName(&local);
    local.replaceAllUsesWith(far);
  }

  // Everything dynamic is far: so is what a mark is about.
  void follow_marks() {
    std::vector<llvm::IntrinsicInst*> marks;
    for (llvm::BasicBlock& block : function_) {
      for (llvm::Instruction& instruction : block) {
        auto* call = dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (call == nullptr) continue;
        if (call->getIntrinsicID() == llvm::Intrinsic::stacksave ||
            call->getIntrinsicID() == llvm::Intrinsic::stackrestore) {
          marks.push_back(call);
        }
      }
    }
    for (llvm::IntrinsicInst* call : marks) {
      llvm::IRBuilder<> at(call);
      if (call->getIntrinsicID() == llvm::Intrinsic::stacksave) {
        call->replaceAllUsesWith(at.CreateLoad(pointer_, last_));
      } else {
        pop(at, call->getArgOperand(0));
        at.CreateStore(call->getArgOperand(0), last_);
      }
      call->eraseFromParent();
    }
  }

  void pop_to_end(llvm::Instruction& before) {
    llvm::IRBuilder<> at(&before);
    pop(at, last_ == nullptr ? end_ : at.CreateLoad(pointer_, last_));
  }

  void pop_frame(llvm::ReturnInst& end) {
    llvm::Instruction* before = end.getParent()->getTerminatingMustTailCall();
    llvm::IRBuilder<> at(before != nullptr ? before : &end);
    pop(at, frame_);
  }

  void pop(llvm::IRBuilder<>& at, Value* to) {
    at.CreateCall(runtime("__farheap_pop", at.getVoidTy(), {pointer_}), {to});
  }

  llvm::FunctionCallee runtime(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> types) {
    return module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  }

  llvm::Function& function_;
  llvm::Module& module_;
  const llvm::DataLayout& layout_;
  const Settings& settings_;
  Report& report_;
  llvm::PointerType* pointer_;
  llvm::IntegerType* word_;
  struct Fixed {
    llvm::AllocaInst* local;
    std::uint64_t bytes;
  };
  std::vector<Fixed> fixed_;
  std::vector<llvm::AllocaInst*> dynamic_;
  std::vector<llvm::ReturnInst*> returns_;
  std::vector<llvm::Instruction*> left_behind_;  // after which the end is set again
  bool is_dynamic_local_ = false;
  std::uint64_t bytes_ = 0;
  Value* frame_ = nullptr;
  Value* end_ = nullptr;
  llvm::AllocaInst* last_ = nullptr;  // local: where the far stack ends now, if that changes
};

}  // namespace

void move_stack(llvm::Function& function, const Settings& settings, Report& report) {
  FarStack(function, settings, report).run();
}

}  // namespace farheap::passes
