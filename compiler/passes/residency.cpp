// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "residency.hpp"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/xxhash.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <cstdint>
#include <string>

#include "settings.hpp"
#include "target.hpp"

namespace farheap::passes {
namespace {

using llvm::Function;
using llvm::Module;

constexpr const char kView[] = "__farheap_view";
constexpr std::uint64_t kNobodysAddress = std::uint64_t{1} << 63;
// Before the module's other code, and after it.
constexpr int kOutermost = 1;

// A function of this module that the linker keeps one of.
Function* make_function(Module& module, llvm::StringRef name, llvm::FunctionType* type, llvm::Comdat* comdat) {
  Function* function = Function::Create(type, llvm::GlobalValue::LinkOnceODRLinkage, name, module);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function->setComdat(comdat);
  function->setDoesNotThrow();
  function->setUWTableKind(module.getUwtable());
  function->addFnAttr(kDone);
  return function;
}

llvm::Comdat* comdat_of(Module& module, llvm::StringRef name) {
  return has_comdats(module) ? module.getOrInsertComdat(name) : nullptr;
}

Function* weak(Module& module, llvm::StringRef name, llvm::FunctionType* type) {
  auto* function = llvm::cast<Function>(module.getOrInsertFunction(name, type).getCallee());
  if (!function->isDeclaration()) return function;
  function->setLinkage(llvm::GlobalValue::ExternalWeakLinkage);
  function->setDoesNotThrow();
  return function;
}

// { if (&callee != null) callee(arguments of the function, or the view); }
void fill(Function& function, Function* callee, llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::LLVMContext& context = function.getContext();
  auto* entry = llvm::BasicBlock::Create(context, "", &function);
  auto* there = llvm::BasicBlock::Create(context, "there", &function);
  auto* done = llvm::BasicBlock::Create(context, "done", &function);
  llvm::IRBuilder<> at(entry);
  at.CreateCondBr(at.CreateIsNotNull(callee), there, done);
  at.SetInsertPoint(there);
  at.CreateCall(callee, arguments);
  at.CreateBr(done);
  at.SetInsertPoint(done);
  at.CreateRetVoid();
}

Function* make_teller(Module& module, llvm::StringRef name, llvm::StringRef callee, llvm::GlobalVariable* view) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* nothing = llvm::Type::getVoidTy(context);
  Function* function = make_function(module, name, llvm::FunctionType::get(nothing, false), view->getComdat());
  fill(*function, weak(module, callee, llvm::FunctionType::get(nothing, {view->getType()}, false)), {view});
  return function;
}

}  // namespace

llvm::StructType* view_type(llvm::LLVMContext& context) {
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  return llvm::StructType::get(context, {word, word, llvm::PointerType::getUnqual(context)});
}

llvm::GlobalVariable* view_of(Module& module) {
  if (llvm::GlobalVariable* there = module.getGlobalVariable(kView)) return there;
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::StructType* type = view_type(context);
  llvm::Constant* first =
      llvm::ConstantStruct::get(type, {llvm::ConstantInt::get(word, kNobodysAddress), llvm::ConstantInt::get(word, 0),
                                       llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context))});
  auto* view = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::LinkOnceODRLinkage, first, kView);
  view->setVisibility(llvm::GlobalValue::HiddenVisibility);
  view->setComdat(comdat_of(module, kView));
  view->setAlignment(llvm::Align(8));
  // A red zone around it would not be the same in all objects.
  llvm::GlobalValue::SanitizerMetadata plain;
  plain.NoAddress = true;
  view->setSanitizerMetadata(plain);
  llvm::appendToGlobalCtors(module, make_teller(module, "__farheap_view_begin", "__farheap_residency", view),
                            kOutermost, view);
  llvm::appendToGlobalDtors(module, make_teller(module, "__farheap_view_end", "__farheap_residency_gone", view),
                            kOutermost, view);
  return view;
}

// One for each kind of processor that functions are compiled for: with AVX the callers take it that all of the wider
// registers are kept, which a function without AVX cannot do.
Function* slow_way_of(const Function& function) {
  auto& module = const_cast<Module&>(*function.getParent());
  const bool keeps_all = can_keep_registers(function);
  const llvm::Attribute processor = function.getFnAttribute("target-cpu");
  const llvm::Attribute features = function.getFnAttribute("target-features");
  const std::string kind =
      (processor.getValueAsString() + ";" + features.getValueAsString() + (keeps_all ? ";all" : "")).str();
  const std::string name = "__farheap_miss." + llvm::utohexstr(llvm::xxh3_64bits(llvm::StringRef(kind)));
  if (Function* there = module.getFunction(name)) return there;
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, llvm::Type::getInt32Ty(context)}, false);
  Function* slow = make_function(module, name, type, comdat_of(module, name));
  if (keeps_all) slow->setCallingConv(llvm::CallingConv::PreserveAll);
  slow->addFnAttr(llvm::Attribute::NoInline);
  slow->addFnAttr(llvm::Attribute::Cold);
  if (function.hasFnAttribute(llvm::Attribute::NoImplicitFloat)) slow->addFnAttr(llvm::Attribute::NoImplicitFloat);
  if (processor.isValid()) slow->addFnAttr(processor);
  const std::string known = features.isValid() ? features.getValueAsString().str() : "";
  const std::string more = features_to_keep_registers(module).str();
  const std::string both = known + (known.empty() || more.empty() ? "" : ",") + more;
  if (!both.empty()) slow->addFnAttr("target-features", both);
  fill(*slow, weak(module, "__farheap_fetch", type), {slow->getArg(0), slow->getArg(1)});
  return slow;
}

}  // namespace farheap::passes
