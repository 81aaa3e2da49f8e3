// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the passes were told, by `-mllvm -farheap-...`, and which functions it is about.
//
// Thread-safety: settings() is read once a module; a compiler may work on several modules at once.
#pragma once

#include <llvm/ADT/StringSet.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/GlobPattern.h>

#include <cstdint>
#include <string>
#include <vector>

namespace farheap::passes {

// kTranslateAll is kTranslateHeap with `stack` and `globals`; settings() says it so.
enum class Level { kNone, kCount, kHint, kGuard, kRecord, kTranslateHeap, kTranslateAll };

// A function with this attribute has been seen to: a second run of the pass, at link time, leaves it alone.
inline constexpr const char kDone[] = "farheap-done";
// One with this was not to be translated.
inline constexpr const char kLeft[] = "farheap-left";
// In place of a profile's name: record one.
inline constexpr const char kRecord[] = "record";

struct Settings {
  Level level = Level::kHint;
  std::uint64_t threshold = 0;          // bytes; what is shorter is not worth a call
  bool stack = false, globals = false;  // level translate-heap: they are far, too
  bool anywhere = false;                // also what is certainly not in the heap: more to test with
  bool executed = false;                // level count: count what is executed, too
  bool reports = false;
  std::string report;  // a file; "-": standard error
  std::vector<llvm::GlobPattern> only, leave;
  // Level guard: kRecord, a profile's name, or "" for all guards.
  std::string guards;
  std::vector<llvm::GlobPattern> borrow;  // level translate-heap: functions that may be lent copies

  // By name, mangled or not, or by the source file's name.
  [[nodiscard]] bool wants(const llvm::Function& function) const;
  [[nodiscard]] bool wants(const llvm::GlobalVariable& variable) const;
  // By `only` alone.
  [[nodiscard]] bool is_only(const llvm::Function& function) const;
  // Never functions of locks and of what else threads wait at.
  [[nodiscard]] bool may_borrow(const llvm::Function& function) const;
  // They are named all the same.
  [[nodiscard]] bool borrows_locks(const llvm::Function& function) const;
};

// As the command line has it. An error names the option and the pattern that is wrong.
[[nodiscard]] llvm::Expected<Settings> settings();

// For tests of the passes: the stack and global variables count as the heap.
[[nodiscard]] bool anywhere();

// The names of functions that have __attribute__((annotate("farheap_leave"))).
[[nodiscard]] llvm::StringSet<> left_by_attribute(const llvm::Module& module);

}  // namespace farheap::passes
