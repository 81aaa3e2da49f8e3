// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "target.hpp"

#include <llvm/TargetParser/Triple.h>

namespace farheap::passes {
namespace {

constexpr unsigned kWordBytes = 8;

llvm::Triple triple_of(const llvm::Module& module) { return llvm::Triple(module.getTargetTriple()); }

bool has_words_of_64_bits(const llvm::Module& module) { return module.getDataLayout().getPointerSize() == kWordBytes; }

bool is_for_linux_on_x86_64(const llvm::Module& module) {
  const llvm::Triple triple = triple_of(module);
  if (triple.getArch() == llvm::Triple::UnknownArch) return true;
  return triple.getArch() == llvm::Triple::x86_64 && triple.isOSLinux() && has_words_of_64_bits(module);
}

// As its option names it; empty if the level links nothing to the program.
std::string what_is_linked(const Settings& settings) {
  if (settings.level == Level::kTranslateHeap) {
    return settings.stack && settings.globals ? "-ffar=translate-all" : "-ffar=translate-heap";
  }
  if (settings.level == Level::kRecord) return "-ffar=record";
  if (settings.level == Level::kCount && settings.executed) return "-ffar-count=executed";
  return settings.level == Level::kGuard && settings.guards == kRecord ? "-ffar-guard=record" : "";
}

}  // namespace

std::string why_no_runtime(const llvm::Module& module, const Settings& settings) {
  const std::string option = what_is_linked(settings);
  if (option.empty() || is_for_linux_on_x86_64(module)) return {};
  return option + ": a program for " + triple_of(module).str() +
         " cannot be linked to its runtime, which is for Linux on x86-64 (x86_64-linux-gnu); compile for that, or with "
         "-ffar=none";
}

std::string why_no_hints(const llvm::Module& module) {
  if (has_words_of_64_bits(module)) return {};
  return "the target " + triple_of(module).str() + " has no addresses of 64 bits, and Farheap does not run there";
}

bool can_keep_registers(const llvm::Function& function) {
  if (triple_of(*function.getParent()).getArch() != llvm::Triple::x86_64) return false;
  if (function.hasFnAttribute(llvm::Attribute::NoImplicitFloat)) return false;
  const llvm::StringRef features = function.getFnAttribute("target-features").getValueAsString();
  return !features.contains("-sse2") && !features.contains("-sse,") && !features.contains("+soft-float");
}

// LLVM 19 and 22 clear the upper halves of vectors before a return, those that the convention has just restored too.
llvm::StringRef features_to_keep_registers(const llvm::Module& module) {
  return triple_of(module).getArch() == llvm::Triple::x86_64 ? "-vzeroupper" : "";
}

bool has_comdats(const llvm::Module& module) { return triple_of(module).supportsCOMDAT(); }

}  // namespace farheap::passes
