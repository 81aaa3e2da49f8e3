// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machine that a module is compiled for: no other file of the passes asks for it. A module
// without a target, as tests have, counts as one for Linux on x86-64.
//
// Thread-safety: pure functions.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include <string>

#include "settings.hpp"

namespace farheap::passes {

// Why a program for this machine cannot have what the level links to it; empty if it can. The rest of the error says
// what to do.
[[nodiscard]] std::string why_no_runtime(const llvm::Module& module, const Settings& settings);

// Why hints and guards do nothing there; empty if they do. The runtime's words are of 64 bits.
[[nodiscard]] std::string why_no_hints(const llvm::Module& module);

// Whether functions can be called that keep all registers, those of vectors too.
[[nodiscard]] bool can_keep_registers(const llvm::Function& function);
// What has to be said in "target-features" of such a function; empty if nothing has.
[[nodiscard]] llvm::StringRef features_to_keep_registers(const llvm::Module& module);

// Whether the linker can keep one of several functions of a name.
[[nodiscard]] bool has_comdats(const llvm::Module& module);

}  // namespace farheap::passes
