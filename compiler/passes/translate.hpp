// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Level translate-heap: the heap's data is in a store, and what translated code loads and stores there goes by gets and
// puts (seed 000, chapters 3 to 6). What an address is, is tested when the program runs:
//
//   address - __farheap_far.begin < __farheap_far.bytes ? __farheap_get(&copy, address, bytes), copy : *address
//
// With -ffar-stack and -ffar-globals (both: level translate-all) the stack and global variables are in the far heap,
// too. What allocates is renamed to the runtime's functions; so is what the runtime has for the C library's functions
// on memory and strings. compiler/runtime has them all.
//
//   opt -load-pass-plugin=farheap-passes-19.so -passes=farheap -farheap-level=translate-heap -S list.ll
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <string>

#include "report.hpp"
#include "settings.hpp"

namespace farheap::passes {

// What has no translation ends the program where it meets far memory (only_near()), or the compilation (refuse()).
void translate_heap(llvm::Function& function, const Settings& settings, Report& report);

// Addresses of functions that global variables begin with: those of the runtime's functions instead.
void rename_in_initialisers(llvm::Module& module);

// -ffar-globals: the module's variables in the far heap. To be called once, before functions are translated.
// True if something has changed.
bool move_globals(llvm::Module& module, const Settings& settings, Report& report);

// Parts of the above, for one another.

// True if the pointer is certainly not one into the heap: the stack, a global variable, another address space.
[[nodiscard]] bool is_near(const llvm::Value* pointer);

// It is given pointers, and neither reads nor writes there, whatever its attributes say.
[[nodiscard]] bool touches_nothing(const llvm::IntrinsicInst& call);

// The program is not compiled: for what would be wrong in every mode.
void refuse(const llvm::Instruction& at, const llvm::Twine& what, const llvm::Twine& remedy);

// Whether an address is one of the far heap, in code. In mode cached none is.
[[nodiscard]] llvm::Value* is_far(llvm::IRBuilder<>& at, llvm::Value* pointer);

// `access` has no translation and needs none where all pointers are near, as in mode cached. Elsewhere the program ends
// before it, with these words; the compiler warns with them. Requires: no pointer is a vector.
void only_near(llvm::Instruction& access, llvm::ArrayRef<llvm::Value*> pointers, const llvm::Twine& what,
               const llvm::Twine& remedy);

// What x86's own intrinsics do in memory as loads, stores and masked accesses that all machines have, where the
// pointers may be far. Those without a like are left.
void lower_x86(llvm::Function& function);
// A line of the cache, which far memory has not.
[[nodiscard]] bool is_of_the_cache(const llvm::IntrinsicInst& call);

// Loads, stores, atomics, and copies and fills that are intrinsics. The number of what was translated.
struct Translated {
  std::uint64_t loads = 0, stores = 0, atomics = 0, copies = 0;
};
[[nodiscard]] Translated translate_accesses(llvm::Function& function);

void translate_calls(llvm::Function& function, const Settings& settings, Report& report);

// -ffar-stack.
void move_stack(llvm::Function& function, const Settings& settings, Report& report);

// Masked accesses by pointers that may be far: an access for each lane.
void split_lanes(llvm::Function& function);
[[nodiscard]] bool has_lanes(llvm::IntrinsicInst& call);

// True if the module's own code of it is what runs, and is translated.
[[nodiscard]] bool is_translated(const llvm::Function& function);
// Locks, semaphores, buffers of setjmp(), lists of arguments, strings and streams: only functions of the C and C++
// libraries touch them.
[[nodiscard]] bool is_of_a_library(const llvm::Type* type);
// Why a variable cannot be far: its address goes directly to what is neither translated, nor lent copies, nor of the
// runtime. Empty: nothing is in the way.
[[nodiscard]] std::string why_local(llvm::Value& object, const Settings& settings);

// The runtime's function in place of the C library's of this name, or nothing.
[[nodiscard]] llvm::StringRef far_name_of(llvm::StringRef name);
// Which arguments of a function that only reads or writes what it is given before it returns may be copied to local
// memory for the call: a bit for each, the highest for all from there on. 0: it is no such function, or not known.
[[nodiscard]] std::uint32_t borrowable(llvm::StringRef name);

}  // namespace farheap::passes
