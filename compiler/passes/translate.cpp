// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "translate.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <vector>

#include "messages.hpp"

namespace farheap::passes {

using llvm::Value;

namespace {

bool is_near_object(const llvm::Value* object) {
  if (llvm::isa<llvm::AllocaInst>(object) || llvm::isa<llvm::GlobalValue>(object)) return true;
  if (llvm::isa<llvm::UndefValue>(object)) return true;
  if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object)) return argument->hasByValAttr();
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(object)) {
    return call->getIntrinsicID() == llvm::Intrinsic::threadlocal_address;
  }
  return false;
}

// What is promised of a function and of pointers was true of the program as it was: a far pointer cannot be loaded
// from ahead of the test, and a function that only read memory now calls the runtime. Optimisers at link time would
// rely on it.
void take_promises_back(llvm::Function& function) {
  for (const auto kind : {llvm::Attribute::Memory, llvm::Attribute::NoSync, llvm::Attribute::NoFree,
                          llvm::Attribute::WillReturn, llvm::Attribute::Speculatable, llvm::Attribute::NoCallback}) {
    function.removeFnAttr(kind);
  }
  for (const auto kind : {llvm::Attribute::Dereferenceable, llvm::Attribute::DereferenceableOrNull}) {
    function.removeRetAttr(kind);
    for (llvm::Argument& argument : function.args()) argument.removeAttr(kind);
  }
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      instruction.setMetadata(llvm::LLVMContext::MD_dereferenceable, nullptr);
      instruction.setMetadata(llvm::LLVMContext::MD_dereferenceable_or_null, nullptr);
      instruction.setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call == nullptr || llvm::isa<llvm::IntrinsicInst>(call)) continue;
      for (const auto kind : {llvm::Attribute::Memory, llvm::Attribute::NoSync, llvm::Attribute::NoFree,
                              llvm::Attribute::WillReturn, llvm::Attribute::AllocSize}) {
        call->removeFnAttr(kind);
      }
      for (const auto kind : {llvm::Attribute::Dereferenceable, llvm::Attribute::DereferenceableOrNull}) {
        call->removeRetAttr(kind);
        for (unsigned i = 0; i < call->arg_size(); ++i) call->removeParamAttr(i, kind);
      }
    }
  }
}

// Inline functions and templates: libraries that were not translated, the runtime's own among them, would find the
// program's before theirs, and have far memory of it. Everybody who uses one has one.
void keep_to_itself(llvm::Function& function) {
  if (!function.hasLinkOnceODRLinkage() || !function.hasDefaultVisibility()) return;
  function.setVisibility(llvm::GlobalValue::HiddenVisibility);
  function.setDSOLocal(true);
}

// Not an instruction: a part of what a global variable begins with.
llvm::Constant* constant_user_of(const llvm::Function& function) {
  for (const llvm::User* user : function.users()) {
    if (llvm::isa<llvm::Constant>(user) && !llvm::isa<llvm::Function>(user)) {
      return const_cast<llvm::Constant*>(llvm::cast<llvm::Constant>(user));
    }
  }
  return nullptr;
}

llvm::Function* far_twin(llvm::Function& function) {
  const llvm::StringRef name = function.isDeclaration() ? far_name_of(function.getName()) : llvm::StringRef();
  if (name.empty()) return nullptr;
  return llvm::cast<llvm::Function>(
      function.getParent()->getOrInsertFunction(name, function.getFunctionType()).getCallee());
}

}  // namespace

bool is_near(const llvm::Value* pointer) {
  if (pointer->getType()->getPointerAddressSpace() != 0) return true;
  if (anywhere()) return false;
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
  return llvm::all_of(objects, is_near_object);
}

bool touches_nothing(const llvm::IntrinsicInst& call) {
  switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::prefetch:  // never a fault
    case llvm::Intrinsic::vaend:
    case llvm::Intrinsic::lifetime_start:
    case llvm::Intrinsic::lifetime_end:
    case llvm::Intrinsic::invariant_start:
    case llvm::Intrinsic::invariant_end:
    case llvm::Intrinsic::launder_invariant_group:
    case llvm::Intrinsic::strip_invariant_group:
    case llvm::Intrinsic::var_annotation:
    case llvm::Intrinsic::ptr_annotation:
    case llvm::Intrinsic::assume: return true;
    default: return false;
  }
}

void refuse(const llvm::Instruction& at, const llvm::Twine& what, const llvm::Twine& remedy) {
  at.getContext().emitError("Farheap: cannot translate: " + place_in_words(at) + ": " + what + "; " + remedy);
}

Value* is_far(llvm::IRBuilder<>& at, Value* pointer) {
  llvm::Module& module = *at.GetInsertBlock()->getModule();
  llvm::IntegerType* word = at.getInt64Ty();
  llvm::StructType* range = llvm::StructType::get(module.getContext(), {word, word});
  llvm::Constant* far = module.getOrInsertGlobal("__farheap_far", range);
  Value* begin = at.CreateAlignedLoad(word, far, llvm::Align(8), "farheap.begin");
  Value* bytes =
      at.CreateAlignedLoad(word, at.CreateConstInBoundsGEP2_32(range, far, 0, 1), llvm::Align(8), "farheap.bytes");
  return at.CreateICmpULT(at.CreateSub(at.CreatePtrToInt(pointer, word), begin), bytes, "farheap.is_far");
}

void only_near(llvm::Instruction& access, llvm::ArrayRef<Value*> pointers, const llvm::Twine& what,
               const llvm::Twine& remedy) {
  llvm::IRBuilder<> at(&access);
  Value* any_far = nullptr;
  for (Value* pointer : pointers) {
    Value* one = is_far(at, pointer);
    any_far = any_far == nullptr ? one : at.CreateOr(any_far, one);
  }
  if (any_far == nullptr) return;
  llvm::Module& module = *access.getModule();
  const std::string text = (place_in_words(access) + ": " + what + "; " + remedy).str();
  warn(module, "not translated: " + text + "; or run the program with FARHEAP_FAR_MODE=cached, in which it needs none");
  llvm::MDNode* seldom = llvm::MDBuilder(module.getContext()).createUnlikelyBranchWeights();
  at.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(any_far, access.getIterator(), true, seldom));
  at.SetCurrentDebugLocation(access.getDebugLoc());
  llvm::FunctionCallee end = module.getOrInsertFunction("__farheap_untranslated", at.getVoidTy(), at.getPtrTy());
  at.CreateCall(end, {at.CreateGlobalString(text, "farheap.untranslated")})->setDoesNotReturn();
}

void translate_heap(llvm::Function& function, const Settings& settings, Report& report) {
  take_promises_back(function);
  keep_to_itself(function);
  if (settings.stack) move_stack(function, settings, report);
  lower_x86(function);
  split_lanes(function);
  translate_calls(function, settings, report);
  const Translated done = translate_accesses(function);
  report.add(function, {}, "translated", "",
             {{"loads", done.loads}, {"stores", done.stores}, {"atomics", done.atomics}, {"copies", done.copies}});
}

void rename_in_initialisers(llvm::Module& module) {
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : module) functions.push_back(&function);
  for (llvm::Function* function : functions) {
    llvm::Function* twin = nullptr;
    // One at a time: constants are made anew, and those that hold them as well.
    while (llvm::Constant* user = constant_user_of(*function)) {
      if (twin == nullptr) twin = far_twin(*function);
      if (twin == nullptr) break;
      if (llvm::isa<llvm::GlobalValue>(user)) {
        user->replaceUsesOfWith(function, twin);
      } else {
        user->handleOperandChange(function, twin);
      }
    }
  }
}

}  // namespace farheap::passes
