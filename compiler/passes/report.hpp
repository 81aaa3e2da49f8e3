// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What -ffar-report prints: a line for each thing that was done, or not done and why. In a file whose name ends with
// .jsonl each line is a JSON object. Several compilers may write to one file: a module's lines are added to it at once.
//
// Thread-safety: one thread.
#pragma once

#include <llvm/ADT/StringRef.h>
#include <llvm/IR/DebugLoc.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace farheap::passes {

class Report {
 public:
  // `to`: a file's name, "-" for standard error, "" for nothing.
  explicit Report(llvm::StringRef to);

  [[nodiscard]] bool is_wanted() const { return !to_.empty(); }

  using Numbers = std::initializer_list<std::pair<llvm::StringRef, std::uint64_t>>;
  // what: hinted, guarded, left, counted, size, translated, borrowed, passed, local, far stack. `text` and `numbers`

  void add(const llvm::Function& function, const llvm::DebugLoc& where, llvm::StringRef what, llvm::StringRef text,
           Numbers numbers = {});

  // what: far, local.
  void add(const llvm::GlobalVariable& variable, llvm::StringRef what, llvm::StringRef text, Numbers numbers = {});

  // A line for all functions together. what: total.
  void add(const llvm::Module& module, llvm::StringRef what, llvm::StringRef text, Numbers numbers);

  // Writes what was added.
  [[nodiscard]] llvm::Error write();

 private:
  void add_line(llvm::StringRef file, unsigned line, llvm::StringRef kind, llvm::StringRef name, llvm::StringRef what,
                llvm::StringRef text, Numbers numbers);

  std::string to_;
  bool json_;
  std::string lines_;
};

}  // namespace farheap::passes
