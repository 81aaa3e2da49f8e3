// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What guards share in a module: its view of what is away, the functions that say where the view is, and the slow way.
// All of it is as farheap/residency.h says; a linker keeps one of each for a program or shared library.
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace farheap::passes {

// begin, bytes, away.
[[nodiscard]] llvm::StructType* view_type(llvm::LLVMContext& context);

// The module's view. The first time, the functions that run when the module is loaded and unloaded are made, too.
[[nodiscard]] llvm::GlobalVariable* view_of(llvm::Module& module);

// void (ptr address, i32 write), for calls from `function`. It keeps all registers of the kinds that the function has,
// vectors too, so that the way without a miss has nothing to save.
[[nodiscard]] llvm::Function* slow_way_of(const llvm::Function& function);

}  // namespace farheap::passes
