// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level translate-heap: the heap's data is in a store, and what translated code loads and stores there goes by gets and
// puts (seed 000, chapters 3 to 6). What an address is, is tested when the program runs:
//
//   address - __farheap_far.begin < __farheap_far.bytes ? __farheap_get(&copy, address, bytes), copy : *address
//
// What allocates is renamed to the runtime's functions; so is what the runtime has for the C library's functions on
// memory and strings. compiler/runtime has them all.
//
//   opt -load-pass-plugin=farheap-passes-19.so -passes=farheap -farheap-level=translate-heap -S list.ll
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

#include <optional>

#include "report.hpp"
#include "settings.hpp"

namespace farheap::passes {

// What cannot be translated is an error of the compilation, with its place.
void translate_heap(llvm::Function& function, const Settings& settings, Report& report);

// Addresses of functions that global variables begin with: those of the runtime's functions instead.
void rename_in_initialisers(llvm::Module& module);

// Parts of the above, for one another.

// True if the pointer is certainly not one into the heap: the stack, a global variable, another address space.
[[nodiscard]] bool is_near(const llvm::Value* pointer);

void refuse(const llvm::Instruction& at, const llvm::Twine& what, const llvm::Twine& remedy);

// Loads, stores, atomics, and copies and fills that are intrinsics. The number of what was translated.
struct Translated {
  std::uint64_t loads = 0, stores = 0, atomics = 0, copies = 0;
};
[[nodiscard]] Translated translate_accesses(llvm::Function& function);

void translate_calls(llvm::Function& function, const Settings& settings, Report& report);

// The runtime's function in place of the C library's of this name, or nothing.
[[nodiscard]] llvm::StringRef far_name_of(llvm::StringRef name);
// Which arguments of a function that only reads or writes what it is given before it returns may be copied to local
// memory for the call: a bit for each, the highest for all from there on. 0: it is no such function, or not known.
[[nodiscard]] std::uint32_t borrowable(llvm::StringRef name);

}  // namespace farheap::passes
