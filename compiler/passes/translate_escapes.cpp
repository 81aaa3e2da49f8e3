// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which variables cannot leave local memory, because the very next that gets their address is nobody who knows far
// memory. What goes there by way of memory is found when the program runs: it is a fault with a message.
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include "translate.hpp"

namespace farheap::passes {
namespace {

using llvm::dyn_cast;
using llvm::isa;

constexpr unsigned kHighestArgument = 31;
// Those of libstdc++ have functions that are in the library, but for what is inlined.
constexpr llvm::StringLiteral kTypesOfLibraries[] = {"union.pthread_",
                                                     "union.sem_t",
                                                     "struct.__jmp_buf_tag",
                                                     "struct.__va_list_tag",
                                                     "class.std::__cxx11::basic_",
                                                     "class.std::basic_",
                                                     "class.std::ios_base",
                                                     "class.std::locale"};

bool takes_far(llvm::IntrinsicInst& call) {
  if (isa<llvm::MemIntrinsic>(call) || has_lanes(call) || touches_nothing(call)) return true;
  return call.getIntrinsicID() == llvm::Intrinsic::vacopy || call.doesNotAccessMemory();
}

// Known to do no more with an argument than to hand it on, to functions that are translated.
bool hands_on(const llvm::CallBase& call, const llvm::Function& callee) {
  if (callee.getName() == "pthread_create") return true;
  if (callee.getName() != "__cxa_atexit") return false;
  const auto* handler = dyn_cast<llvm::Function>(call.getArgOperand(0));
  return handler != nullptr && is_translated(*handler);
}

bool takes_far(llvm::CallBase& call, const llvm::Use& use, const Settings& settings) {
  if (auto* intrinsic = dyn_cast<llvm::IntrinsicInst>(&call)) return takes_far(*intrinsic);
  if (call.isInlineAsm()) return false;
  if (!call.isArgOperand(&use)) return true;
  const unsigned argument = call.getArgOperandNo(&use);
  if (call.isByValArgument(argument)) return true;  // copied for the call
  if (call.paramHasAttr(argument, llvm::Attribute::InAlloca) ||
      call.paramHasAttr(argument, llvm::Attribute::Preallocated) ||
      call.paramHasAttr(argument, llvm::Attribute::SwiftError)) {
    return false;
  }
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr || is_translated(*callee)) return true;
  if (!callee->isDeclaration()) return false;
  if (!far_name_of(callee->getName()).empty() || callee->getName().starts_with("__farheap_")) return true;
  if (hands_on(call, *callee)) return true;
  return (borrowable(callee->getName()) >> std::min(argument, kHighestArgument) & 1) != 0 ||
         settings.may_borrow(*callee);
}

std::string words_for(const llvm::CallBase& call) {
  if (call.isInlineAsm()) return "its address goes to inline assembly";
  const llvm::Function* callee = call.getCalledFunction();
  return "its address goes to " + (callee != nullptr ? llvm::demangle(callee->getName()) : std::string("a function"));
}

}  // namespace

bool is_translated(const llvm::Function& function) {
  return !function.isDeclaration() && !function.hasAvailableExternallyLinkage() && !function.hasFnAttribute(kLeft);
}

bool is_of_a_library(const llvm::Type* type) {
  if (const auto* array = dyn_cast<llvm::ArrayType>(type)) return is_of_a_library(array->getElementType());
  const auto* structure = dyn_cast<llvm::StructType>(type);
  if (structure == nullptr) return false;
  if (structure->hasName()) {
    for (const llvm::StringRef begin : kTypesOfLibraries) {
      if (structure->getName().starts_with(begin)) return true;
    }
  }
  return llvm::any_of(structure->elements(), is_of_a_library);
}

std::string why_local(llvm::Value& object, const Settings& settings) {
  llvm::SmallVector<llvm::Value*, 8> to_do{&object};
  llvm::SmallPtrSet<llvm::Value*, 16> seen{&object};
  while (!to_do.empty()) {
    for (llvm::Use& use : to_do.pop_back_val()->uses()) {
      llvm::User* user = use.getUser();
      if (const auto* at = dyn_cast<llvm::Instruction>(user);
          at != nullptr && at->getFunction()->hasFnAttribute(kLeft)) {
        return "it is used in " + at->getFunction()->getName().str() + ", which is not translated";
      }
      if (isa<llvm::VAArgInst>(user)) return "it is a list of arguments";
      auto* call = dyn_cast<llvm::CallBase>(user);
      if (call != nullptr && !takes_far(*call, use, settings)) return words_for(*call);
      const bool goes_on = isa<llvm::GEPOperator, llvm::BitCastOperator, llvm::AddrSpaceCastOperator, llvm::PHINode,
                               llvm::SelectInst, llvm::FreezeInst>(user) ||
                           (call != nullptr && isa<llvm::IntrinsicInst>(call) && call->getType()->isPointerTy());
      if (goes_on && seen.insert(user).second) to_do.push_back(user);
    }
  }
  return {};
}

}  // namespace farheap::passes
