// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "translate.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <vector>

namespace farheap::passes {
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
  const llvm::Function& function = *at.getFunction();
  std::string place = function.getParent()->getSourceFileName();
  if (const llvm::DebugLoc& where = at.getDebugLoc(); where && where.getLine() != 0) {
    place = where->getFilename().str() + ":" + std::to_string(where.getLine());
  } else if (const llvm::DISubprogram* known = function.getSubprogram()) {
    place = known->getFilename().str() + ":" + std::to_string(known->getLine());
  } else {
    place += " (-g1 tells the line)";
  }
  function.getContext().emitError("Farheap: cannot translate: " + llvm::demangle(function.getName()) + ", " + place +
                                  ": " + what + "; " + remedy);
}

void translate_heap(llvm::Function& function, const Settings& settings, Report& report) {
  take_promises_back(function);
  keep_to_itself(function);
  if (settings.stack) move_stack(function, settings, report);
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
