// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "messages.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Function.h>

namespace farheap::passes {
namespace {

class Warning : public llvm::DiagnosticInfo {
 public:
  explicit Warning(llvm::StringRef text)
      : llvm::DiagnosticInfo(llvm::getNextAvailablePluginDiagnosticKind(), llvm::DS_Warning), text_(text) {}
  void print(llvm::DiagnosticPrinter& to) const override { to << "Farheap: " << text_; }

 private:
  llvm::StringRef text_;
};

}  // namespace

void complain(llvm::Module& module, llvm::Error error) {
  if (error) module.getContext().emitError("Farheap: " + llvm::toString(std::move(error)));
}

void warn(llvm::Module& module, llvm::StringRef text) {
  if (!text.empty()) module.getContext().diagnose(Warning(text));
}

std::string place_in_words(const llvm::Instruction& at) {
  const llvm::Function& function = *at.getFunction();
  const std::string name = llvm::demangle(function.getName()) + ", ";
  if (const llvm::DebugLoc& where = at.getDebugLoc(); where && where.getLine() != 0) {
    return name + where->getFilename().str() + ":" + std::to_string(where.getLine());
  }
  if (const llvm::DISubprogram* known = function.getSubprogram()) {
    return name + known->getFilename().str() + ":" + std::to_string(known->getLine());
  }
  return name + function.getParent()->getSourceFileName() + " (-g1 tells the line)";
}

}  // namespace farheap::passes
