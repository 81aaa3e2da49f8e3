// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages of the passes through the compiler: errors, which end the compilation, and warnings of the group
// -Wbackend-plugin, which do not.
//
// Thread-safety: one thread for a module.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/ADT/Twine.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>

#include <string>

namespace farheap::passes {

// Says nothing where there is no error.
void complain(llvm::Module& module, llvm::Error error);
// Says nothing where the text is empty.
void warn(llvm::Module& module, llvm::StringRef text);

// "f(int), sort.c:12", as far as it is known.
[[nodiscard]] std::string place_in_words(const llvm::Instruction& at);

}  // namespace farheap::passes
