// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "count.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include <vector>

namespace farheap::passes {
namespace {

constexpr const char kSection[] = "farheap_counts";

// The layout is that of counts.c: name, calls, instructions, loads, stores.
llvm::GlobalVariable* make_record(llvm::Function& function) {
  llvm::Module& module = *function.getParent();
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::StructType* layout = llvm::StructType::get(context, {pointer, word, word, word, word});
  llvm::Constant* text = llvm::ConstantDataArray::getString(context, llvm::demangle(function.getName()));
  auto* name = new llvm::GlobalVariable(module, text->getType(), true, llvm::GlobalValue::PrivateLinkage, text,
                                        "farheap_counted_name");
  name->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  llvm::Constant* zero = llvm::ConstantInt::get(word, 0);
  auto* record =
      new llvm::GlobalVariable(module, layout, false, llvm::GlobalValue::PrivateLinkage,
                               llvm::ConstantStruct::get(layout, {name, zero, zero, zero, zero}), "farheap_counted");
  record->setSection(kSection);
  record->setAlignment(llvm::Align(8));
  // A function that several objects have is kept once: so is its record, or the others would be printed as zeros.
  if (function.hasComdat()) record->setComdat(function.getComdat());
  llvm::appendToCompilerUsed(module, {record});
  return record;
}

void add(llvm::IRBuilder<>& at, llvm::GlobalVariable* record, unsigned field, std::uint64_t number) {
  if (number == 0) return;
  llvm::Value* address = at.CreateConstInBoundsGEP2_32(record->getValueType(), record, 0, field);
  // Threads count together.
  at.CreateAtomicRMW(llvm::AtomicRMWInst::Add, address, at.getInt64(number), llvm::Align(8),
                     llvm::AtomicOrdering::Monotonic);
}

}  // namespace

Counts count(const llvm::BasicBlock& block) {
  Counts counts;
  for (const llvm::Instruction& instruction : block) {
    if (instruction.isDebugOrPseudoInst()) continue;
    ++counts.instructions;
    counts.loads += llvm::isa<llvm::LoadInst>(instruction) ? 1 : 0;
    counts.stores += llvm::isa<llvm::StoreInst>(instruction) ? 1 : 0;
  }
  return counts;
}

Counts count(const llvm::Function& function) {
  Counts sum;
  for (const llvm::BasicBlock& block : function) {
    const Counts counts = count(block);
    sum.instructions += counts.instructions;
    sum.loads += counts.loads;
    sum.stores += counts.stores;
  }
  return sum;
}

void count_executions(llvm::Function& function) {
  // Counted before anything is added, so that the counting does not count itself.
  std::vector<std::pair<llvm::BasicBlock*, Counts>> blocks;
  for (llvm::BasicBlock& block : function) blocks.emplace_back(&block, count(block));
  llvm::GlobalVariable* record = make_record(function);
  for (const auto& [block, counts] : blocks) {
    const auto first = block->getFirstInsertionPt();
    if (first == block->end()) continue;  // a block of the unwinder that can hold nothing else
    llvm::IRBuilder<> at(block, first);
    if (block == &function.getEntryBlock()) add(at, record, 1, 1);
    add(at, record, 2, counts.instructions);
    add(at, record, 3, counts.loads);
    add(at, record, 4, counts.stores);
  }
}

}  // namespace farheap::passes
