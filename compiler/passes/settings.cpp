// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "settings.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Function.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/Path.h>

namespace farheap::passes {
namespace {

namespace cl = llvm::cl;

cl::opt<Level> g_level(
    "farheap-level", cl::desc("Farheap: what is added to the program"), cl::init(Level::kHint),
    cl::values(
        clEnumValN(Level::kNone, "none", "nothing"),
        clEnumValN(Level::kCount, "count", "counts of instructions, loads and stores"),
        clEnumValN(Level::kHint, "hint", "what loops will touch, told to the pager"),
        clEnumValN(Level::kGuard, "guard", "the same, and looks whether a page is away before accesses that may miss"),
        clEnumValN(Level::kRecord, "record", "counts of accesses and time, by context and allocation site"),
        clEnumValN(Level::kTranslateHeap, "translate-heap",
                   "gets and puts in a store for loads and stores in the heap"),
        clEnumValN(Level::kTranslateAll, "translate-all", "for those on the stack and in global variables, too")));
// Below a mebibyte the pager's own read-ahead is there before the hint has paid.
cl::opt<std::uint64_t> g_threshold("farheap-threshold", cl::desc("Farheap: bytes from which on a loop is hinted"),
                                   cl::init(1u << 20));
cl::opt<bool> g_anywhere("farheap-anywhere", cl::Hidden,
                         cl::desc("Farheap: the stack and globals count as the heap; for tests of the passes"));
cl::opt<bool> g_stack("farheap-stack", cl::desc("Farheap: level translate-heap: the stack, too"));
cl::opt<bool> g_globals("farheap-globals", cl::desc("Farheap: level translate-heap: global variables, too"));
cl::opt<bool> g_executed("farheap-executed", cl::desc("Farheap: level count counts what is executed, too"));
cl::opt<std::string> g_guards("farheap-guards",
                              cl::desc("Farheap: level guard: guards by this profile; record: guards that make one"));
// Nobody reads it. It makes command lines differ where profiles of one name do.
cl::opt<std::string> g_guards_hash("farheap-guards-hash", cl::Hidden, cl::desc("Farheap: of the profile"));
cl::opt<std::string> g_report("farheap-report", cl::desc("Farheap: report to this file; -: standard error"));
cl::list<std::string> g_only("farheap-only", cl::CommaSeparated, cl::desc("Farheap: only these functions or files"));
cl::list<std::string> g_borrow(
    "farheap-borrow", cl::CommaSeparated,
    cl::desc("Farheap: functions that read and write what they are given, and keep none of it"));
cl::list<std::string> g_leave("farheap-leave", cl::CommaSeparated, cl::desc("Farheap: not these functions or files"));

llvm::Error read_patterns(const cl::list<std::string>& option, std::vector<llvm::GlobPattern>& patterns) {
  for (const std::string& text : option) {
    auto pattern = llvm::GlobPattern::create(text);
    if (!pattern) {
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "-%s: the pattern '%s' is wrong: %s",
                                     option.ArgStr.str().c_str(), text.c_str(),
                                     llvm::toString(pattern.takeError()).c_str());
    }
    patterns.push_back(std::move(*pattern));
  }
  return llvm::Error::success();
}

// Parameters are left off, so that a pattern need not know them: `graph::*` is for graph::find(int), too.
std::string plain_name(const std::string& demangled) { return demangled.substr(0, demangled.find('(')); }

bool any_of(const std::vector<llvm::GlobPattern>& patterns, llvm::StringRef symbol, llvm::StringRef file) {
  if (patterns.empty()) return false;
  const llvm::StringRef base = llvm::sys::path::filename(file);
  const std::string demangled = llvm::demangle(symbol);
  const std::string plain = plain_name(demangled);
  for (const llvm::GlobPattern& pattern : patterns) {
    for (const llvm::StringRef name : {symbol, llvm::StringRef(demangled), llvm::StringRef(plain), file, base}) {
      if (pattern.match(name)) return true;
    }
  }
  return false;
}

llvm::StringRef file_of(const llvm::Function& function) {
  const llvm::DISubprogram* known = function.getSubprogram();
  return known != nullptr ? known->getFilename() : llvm::StringRef(function.getParent()->getSourceFileName());
}

// A lent copy of a lock is none: who waits at it waits for ever.
bool is_of_locks(const llvm::Function& function) {
  static constexpr llvm::StringLiteral kBegins[] = {
      "pthread_mutex_",   "pthread_cond_", "pthread_rwlock_", "pthread_spin_", "pthread_barrier_",
      "pthread_once",     "sem_",          "__kmpc_critical", "mtx_",          "cnd_",
      "omp_init_",        "omp_destroy_",  "omp_set_lock",    "omp_unset_",    "omp_test_",
      "omp_set_nest_lock"};
  return llvm::any_of(kBegins, [&](llvm::StringRef begin) { return function.getName().starts_with(begin); });
}

}  // namespace

bool Settings::is_only(const llvm::Function& function) const {
  return any_of(only, function.getName(), file_of(function));
}

bool Settings::wants(const llvm::Function& function) const {
  return (only.empty() || is_only(function)) && !any_of(leave, function.getName(), file_of(function));
}

bool Settings::wants(const llvm::GlobalVariable& variable) const {
  const llvm::StringRef file = variable.getParent()->getSourceFileName();
  return (only.empty() || any_of(only, variable.getName(), file)) && !any_of(leave, variable.getName(), file);
}

bool Settings::may_borrow(const llvm::Function& function) const {
  return !is_of_locks(function) && any_of(borrow, function.getName(), file_of(function));
}

bool Settings::borrows_locks(const llvm::Function& function) const {
  return is_of_locks(function) && any_of(borrow, function.getName(), file_of(function));
}

bool anywhere() { return g_anywhere; }

llvm::Expected<Settings> settings() {
  Settings result;
  result.level = g_level;
  if (g_level == Level::kTranslateAll) result.level = Level::kTranslateHeap;
  result.stack = g_stack || g_level == Level::kTranslateAll;
  result.globals = g_globals || g_level == Level::kTranslateAll;
  result.threshold = g_threshold;
  result.anywhere = g_anywhere;
  result.executed = g_executed;
  result.guards = g_guards;
  result.reports = !g_report.empty();
  result.report = g_report;
  if (auto error = read_patterns(g_only, result.only)) return error;
  if (auto error = read_patterns(g_leave, result.leave)) return error;
  if (auto error = read_patterns(g_borrow, result.borrow)) return error;
  return result;
}

llvm::StringSet<> left_by_attribute(const llvm::Module& module) {
  llvm::StringSet<> names;
  const llvm::GlobalVariable* all = module.getGlobalVariable("llvm.global.annotations");
  if (all == nullptr || !all->hasInitializer()) return names;
  const auto* rows = llvm::dyn_cast<llvm::ConstantArray>(all->getInitializer());
  if (rows == nullptr) return names;
  for (const llvm::Use& use : rows->operands()) {
    const auto* row = llvm::dyn_cast<llvm::ConstantStruct>(use.get());
    if (row == nullptr || row->getNumOperands() < 2) continue;
    const auto* function = llvm::dyn_cast<llvm::Function>(row->getOperand(0)->stripPointerCasts());
    const auto* text = llvm::dyn_cast<llvm::GlobalVariable>(row->getOperand(1)->stripPointerCasts());
    if (function == nullptr || text == nullptr || !text->hasInitializer()) continue;
    const auto* bytes = llvm::dyn_cast<llvm::ConstantDataArray>(text->getInitializer());
    if (bytes != nullptr && bytes->isCString() && bytes->getAsCString() == "farheap_leave") {
      names.insert(function->getName());
    }
  }
  return names;
}

}  // namespace farheap::passes
