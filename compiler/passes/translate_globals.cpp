// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -ffar-globals: variables in the far heap. For each there is a pointer, NAME.farheap, with the variable's own linkage,
// which begins with the address of the local original. Two constructors, before all others:
//
//   farheap.move      __farheap_move(&NAME.farheap, ...): room in the far heap, with what the original has; the pointer
//                     leads there from now on, and the original is closed if others might know it
//   farheap.relocate  what variables begin with that is an address of one that has moved: the address where it is now
//
// Functions load the pointer when they begin; it changes no more. A variable that is only declared may be far, where
// its module was translated, or not, as stdout: its pointer is weak.
//
// Invariant: each name of a variable in translated code becomes the pointer's value, or none in the module does.
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <string>
#include <vector>

#include "translate.hpp"

namespace farheap::passes {
namespace {

using llvm::Constant;
using llvm::dyn_cast;
using llvm::GlobalVariable;
using llvm::isa;

// Those up to 100 are the implementation's, which this is.
constexpr int kMove = 1, kRelocate = 2;
constexpr std::uint64_t kPageBytes = 4096;
constexpr const char kModuleDone[] = "farheap.globals";

bool is_plain(const GlobalVariable& variable) {
  return !variable.isThreadLocal() && variable.getAddressSpace() == 0 && !variable.hasSection() &&
         !variable.getName().starts_with("llvm.") && !variable.getName().contains(".farheap");
}

// Nobody else's may take its place, and it begins with what it says.
bool is_definite(const GlobalVariable& variable) {
  return variable.hasInitializer() && is_plain(variable) && !variable.isExternallyInitialized() &&
         (variable.hasLocalLinkage() || variable.hasExternalLinkage());
}

// Variables that begin with the address of `object`, or with what is computed from it; false if something else does.
bool find_holders(Constant& object, llvm::SmallPtrSetImpl<GlobalVariable*>& holders) {
  llvm::SmallVector<Constant*, 8> to_do{&object};
  llvm::SmallPtrSet<Constant*, 16> seen{&object};
  bool are_all = true;
  while (!to_do.empty()) {
    for (llvm::User* user : to_do.pop_back_val()->users()) {
      auto* constant = dyn_cast<Constant>(user);
      if (constant == nullptr) continue;
      if (auto* holder = dyn_cast<GlobalVariable>(constant)) {
        holders.insert(holder);
      } else if (isa<llvm::GlobalValue>(constant)) {
        are_all = false;
      } else if (seen.insert(constant).second) {
        to_do.push_back(constant);
      }
    }
  }
  return are_all;
}

class Globals {
 public:
  Globals(llvm::Module& module, const Settings& settings, Report& report)
      : module_(module),
        layout_(module.getDataLayout()),
        settings_(settings),
        report_(report),
        pointer_(llvm::PointerType::getUnqual(module.getContext())),
        word_(llvm::Type::getInt64Ty(module.getContext())) {}

  bool run() {
    if (module_.getNamedMetadata(kModuleDone) != nullptr) return false;
    module_.getOrInsertNamedMetadata(kModuleDone);
    choose();
    for (GlobalVariable*& variable : chosen_) variable = padded(*variable);
    for (GlobalVariable* variable : chosen_) pointers_[variable] = pointer_to(*variable);
    for (GlobalVariable* variable : declared_) pointers_[variable] = weak_pointer_to(*variable);
    if (pointers_.empty()) return false;
    if (!chosen_.empty()) make_move();
    make_relocate();
    std::vector<Constant*> all;
    for (const auto& [variable, pointer] : pointers_) all.push_back(variable);
    llvm::convertUsersOfConstantsToInstructions(all);
    for (GlobalVariable* variable : chosen_) use_pointer(*variable);
    for (GlobalVariable* variable : declared_) use_pointer(*variable);
    return true;
  }

 private:
  void choose() {
    for (GlobalVariable& variable : module_.globals()) {
      if (variable.isDeclaration()) {
        if (!variable.use_empty() && is_plain(variable) && !variable.isConstant() && !is_of_the_language(variable))
          declared_.push_back(&variable);
        continue;
      }
      if (variable.isConstant() || variable.getName().starts_with("llvm.")) continue;
      const std::string why = reason_to_stay(variable);
      if (why.empty()) {
        chosen_.push_back(&variable);
        report_.add(variable, "far", "", {{"bytes", bytes_of(variable)}});
      } else {
        report_.add(variable, "local", why);
      }
    }
  }

  // Tables of virtual functions, types, and what libstdc++ and the loader have.
  static bool is_of_the_language(const GlobalVariable& variable) {
    const llvm::StringRef name = variable.getName();
    return name.starts_with("_ZT") || name.starts_with("_ZSt") || name.starts_with("_ZNSt") || name.starts_with("__");
  }

  std::string reason_to_stay(GlobalVariable& variable) const {
    if (variable.isThreadLocal()) return "it is of a thread";
    if (!is_plain(variable) || variable.isExternallyInitialized()) return "it is in a section, or a space, of its own";
    if (!is_definite(variable)) return "another module's may take its place";
    if (!settings_.wants(variable)) return "by -ffar-only or -ffar-leave";
    if (!variable.getValueType()->isSized() || bytes_of(variable) == 0) return "it has no size";
    if (is_of_a_library(variable.getValueType())) {
      return "it is of a library's type, which only its own functions touch";
    }
    llvm::SmallPtrSet<GlobalVariable*, 8> holders;
    if (!find_holders(variable, holders)) return "it has another name, too";
    for (const GlobalVariable* holder : holders) {
      if (!is_definite(*holder))
        return "its address is in " + llvm::demangle(holder->getName()) + ", which cannot be changed";
    }
    // Its address may come from a constant expression: what that is used for counts, too.
    return why_local(variable, settings_);
  }

  std::uint64_t bytes_of(const GlobalVariable& variable) const {
    return layout_.getTypeAllocSize(variable.getValueType()).getFixedValue();
  }

  // Variables that other modules may know have pages of their own, to be closed.
  GlobalVariable* padded(GlobalVariable& variable) {
    if (variable.hasLocalLinkage()) return &variable;
    llvm::Type* type = variable.getValueType();
    const std::uint64_t bytes = bytes_of(variable);
    llvm::Type* rest =
        llvm::ArrayType::get(llvm::Type::getInt8Ty(module_.getContext()), llvm::alignTo(bytes, kPageBytes) - bytes);
    llvm::StructType* both = llvm::StructType::get(type, rest);
    auto* made = new GlobalVariable(
        module_, both, false, variable.getLinkage(),
        llvm::ConstantStruct::get(both, {variable.getInitializer(), llvm::Constant::getNullValue(rest)}), "",
        &variable);
    made->copyAttributesFrom(&variable);
    made->copyMetadata(&variable, 0);
    made->setAlignment(std::max(llvm::Align(kPageBytes), variable.getAlign().valueOrOne()));
    made->takeName(&variable);
    bytes_[made] = bytes;
    alignment_[made] = std::max(variable.getAlign().valueOrOne(), layout_.getABITypeAlign(type));
    variable.replaceAllUsesWith(made);
    variable.eraseFromParent();
    return made;
  }

  GlobalVariable* pointer_to(GlobalVariable& variable) {
    auto* made = new GlobalVariable(module_, pointer_, false, variable.getLinkage(), &variable,
                                    variable.getName() + ".farheap", &variable);
    made->setVisibility(variable.getVisibility());
    made->setDSOLocal(variable.isDSOLocal());
    return made;
  }

  GlobalVariable* weak_pointer_to(GlobalVariable& variable) {
    auto* made = new GlobalVariable(module_, pointer_, false, llvm::GlobalValue::ExternalWeakLinkage, nullptr,
                                    variable.getName() + ".farheap", &variable);
    made->setVisibility(variable.getVisibility());
    return made;
  }

  llvm::Function* constructor(const char* name, int priority) {
    auto* made = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(module_.getContext()), false),
                                        llvm::GlobalValue::InternalLinkage, name, module_);
    made->addFnAttr(kDone);
    made->addFnAttr(llvm::Attribute::NoInline);
    llvm::appendToGlobalCtors(module_, made, priority);
    llvm::ReturnInst::Create(module_.getContext(), llvm::BasicBlock::Create(module_.getContext(), "", made));
    return made;
  }

  void make_move() {
    llvm::Function* move = constructor("farheap.move", kMove);
    move->addFnAttr(kLeft);  // the names in it are the originals'
    llvm::IRBuilder<> at(move->getEntryBlock().getTerminator());
    const llvm::FunctionCallee entry = module_.getOrInsertFunction(
        "__farheap_move",
        llvm::FunctionType::get(at.getVoidTy(), {pointer_, pointer_, pointer_, word_, word_, word_}, false));
    for (GlobalVariable* variable : chosen_) {
      const bool is_own = variable->hasLocalLinkage();
      const llvm::Align alignment =
          is_own ? std::max(variable->getAlign().valueOrOne(), layout_.getABITypeAlign(variable->getValueType()))
                 : alignment_.lookup(variable);
      const std::uint64_t bytes = is_own ? bytes_of(*variable) : bytes_.lookup(variable);
      at.CreateCall(entry, {pointers_[variable], variable, own_name_of(*variable), at.getInt64(bytes),
                            at.getInt64(alignment.value()), at.getInt64(is_own ? 0 : bytes_of(*variable))});
    }
  }

  // A name that no other module's variable stands for.
  llvm::GlobalValue* own_name_of(GlobalVariable& variable) {
    if (variable.hasLocalLinkage() || variable.isDSOLocal()) return &variable;
    return llvm::GlobalAlias::create(variable.getValueType(), 0, llvm::GlobalValue::InternalLinkage,
                                     variable.getName() + ".farheap.own", &variable, &module_);
  }

  bool refers_to_moved(Constant* constant) {
    if (auto* variable = dyn_cast<GlobalVariable>(constant)) return pointers_.count(variable) != 0;
    if (isa<llvm::GlobalValue>(constant)) return false;
    return llvm::any_of(constant->operands(), [&](const llvm::Use& use) {
      auto* part = dyn_cast<Constant>(use.get());
      return part != nullptr && refers_to_moved(part);
    });
  }

  void make_relocate() {
    llvm::SmallPtrSet<GlobalVariable*, 16> holders;
    for (const auto& [variable, pointer] : pointers_) (void)find_holders(*variable, holders);
    std::vector<GlobalVariable*> all;
    for (GlobalVariable& variable : module_.globals()) {
      if (holders.contains(&variable) && is_definite(variable)) all.push_back(&variable);
    }
    if (all.empty()) return;
    llvm::Function* relocate = constructor("farheap.relocate", kRelocate);
    relocated_ = relocate->getEntryBlock().getTerminator();
    for (GlobalVariable* holder : all) {
      holder->setConstant(false);
      relocate_parts(*holder, holder->getInitializer(), 0);
    }
  }

  void relocate_parts(GlobalVariable& holder, Constant* part, std::uint64_t offset) {
    if (!refers_to_moved(part)) return;
    llvm::Type* type = part->getType();
    if (auto* structure = dyn_cast<llvm::StructType>(type); structure != nullptr && isa<llvm::ConstantStruct>(part)) {
      const llvm::StructLayout* fields = layout_.getStructLayout(structure);
      for (unsigned i = 0; i < structure->getNumElements(); ++i) {
        relocate_parts(holder, part->getAggregateElement(i), offset + fields->getElementOffset(i).getFixedValue());
      }
      return;
    }
    if (isa<llvm::ConstantArray>(part) || isa<llvm::ConstantVector>(part)) {
      const std::uint64_t step = layout_.getTypeAllocSize(part->getAggregateElement(0U)->getType()).getFixedValue();
      for (unsigned i = 0; i < part->getNumOperands(); ++i) {
        relocate_parts(holder, part->getAggregateElement(i), offset + i * step);
      }
      return;
    }
    llvm::IRBuilder<> at(relocated_);
    llvm::AllocaInst* copy = at.CreateAlloca(type);
    at.CreateStore(part, copy);
    at.CreateCall(module_.getOrInsertFunction(
                      "__farheap_copy", llvm::FunctionType::get(at.getVoidTy(), {pointer_, pointer_, word_}, false)),
                  {llvm::ConstantExpr::getGetElementPtr(at.getInt8Ty(), &holder, at.getInt64(offset)), copy,
                   at.getInt64(layout_.getTypeStoreSize(type).getFixedValue())});
  }

  void use_pointer(GlobalVariable& variable) {
    llvm::MapVector<llvm::Function*, std::vector<llvm::Use*>> uses;
    for (llvm::Use& use : variable.uses()) {
      auto* at = dyn_cast<llvm::Instruction>(use.getUser());
      if (at == nullptr || isa<llvm::LandingPadInst>(at) || at->getFunction()->hasFnAttribute(kLeft)) continue;
      // Inline assembly takes the variable's name.
      if (const auto* call = dyn_cast<llvm::CallBase>(at); call != nullptr && call->isInlineAsm()) continue;
      uses[at->getFunction()].push_back(&use);
    }
    for (auto& [function, all] : uses) {
      llvm::Value* value = value_in(*function, variable);
      for (llvm::Use* use : all) use->set(value);
    }
  }

  llvm::Value* value_in(llvm::Function& function, GlobalVariable& variable) {
    llvm::IRBuilder<> at(&function.getEntryBlock(), function.getEntryBlock().getFirstInsertionPt());
    llvm::Value* pointer = pointers_[&variable];
    if (variable.isDeclaration()) {
      GlobalVariable*& usual = usual_[&variable];
      if (usual == nullptr) {
        usual = new GlobalVariable(module_, pointer_, false, llvm::GlobalValue::PrivateLinkage, &variable,
                                   variable.getName() + ".farheap.local");
      }
      pointer = at.CreateSelect(at.CreateIsNull(pointer), usual, pointer);
    }
    return at.CreateLoad(pointer_, pointer, variable.getName());
  }

  llvm::Module& module_;
  const llvm::DataLayout& layout_;
  const Settings& settings_;
  Report& report_;
  llvm::PointerType* pointer_;
  llvm::IntegerType* word_;
  std::vector<GlobalVariable*> chosen_, declared_;
  llvm::MapVector<GlobalVariable*, GlobalVariable*> pointers_;
  llvm::DenseMap<const GlobalVariable*, std::uint64_t> bytes_;
  llvm::DenseMap<const GlobalVariable*, llvm::Align> alignment_;
  llvm::DenseMap<const GlobalVariable*, GlobalVariable*> usual_;  // for where there is no pointer
  llvm::Instruction* relocated_ = nullptr;
};

}  // namespace

bool move_globals(llvm::Module& module, const Settings& settings, Report& report) {
  return Globals(module, settings, report).run();
}

}  // namespace farheap::passes
