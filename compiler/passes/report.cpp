// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/JSON.h>
#include <llvm/Support/raw_ostream.h>

namespace farheap::passes {
namespace {

struct Place {
  std::string file;
  unsigned line = 0;  // 0: not known
};

// Where the instruction is written, or the function if nothing is known of the instruction.
Place place_of(const llvm::Function& function, const llvm::DebugLoc& where) {
  if (where && where.getLine() != 0) return {where->getFilename().str(), where.getLine()};
  if (const llvm::DISubprogram* known = function.getSubprogram()) return {known->getFilename().str(), known->getLine()};
  return {function.getParent()->getSourceFileName(), 0};
}

}  // namespace

Report::Report(llvm::StringRef to) : to_(to), json_(to.ends_with(".jsonl")) {}

void Report::add(const llvm::Function& function, const llvm::DebugLoc& where, llvm::StringRef what,
                 llvm::StringRef text, Numbers numbers) {
  if (!is_wanted()) return;
  const Place place = place_of(function, where);
  add_line(place.file, place.line, "function", llvm::demangle(function.getName()), what, text, numbers);
}

void Report::add(const llvm::GlobalVariable& variable, llvm::StringRef what, llvm::StringRef text, Numbers numbers) {
  if (!is_wanted()) return;
  Place place{variable.getParent()->getSourceFileName(), 0};
  llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> known;
  variable.getDebugInfo(known);
  if (!known.empty()) {
    place = {known.front()->getVariable()->getFilename().str(), known.front()->getVariable()->getLine()};
  }
  add_line(place.file, place.line, "variable", llvm::demangle(variable.getName()), what, text, numbers);
}

void Report::add(const llvm::Module& module, llvm::StringRef what, llvm::StringRef text, Numbers numbers) {
  if (is_wanted()) add_line(module.getSourceFileName(), 0, "function", "(all)", what, text, numbers);
}

void Report::add_line(llvm::StringRef file, unsigned line, llvm::StringRef kind, llvm::StringRef name,
                      llvm::StringRef what, llvm::StringRef text, Numbers numbers) {
  llvm::raw_string_ostream out(lines_);
  if (json_) {
    llvm::json::Object row{{"format", 1},
                           {"file", llvm::json::fixUTF8(file)},
                           {"line", line},
                           {kind, llvm::json::fixUTF8(name)},
                           {"what", what.str()}};
    if (!text.empty()) row["text"] = llvm::json::fixUTF8(text);
    for (const auto& [key, number] : numbers) row[key] = static_cast<std::int64_t>(number);
    out << llvm::json::Value(std::move(row)) << '\n';
    return;
  }
  out << file << ':';
  if (line != 0) out << line << ':';
  out << ' ' << name << ": " << what << ':';
  if (!text.empty()) out << ' ' << text;
  const char* between = text.empty() ? " " : "; ";
  for (const auto& [key, number] : numbers) {
    out << between << number << ' ' << key;
    between = ", ";
  }
  out << '\n';
}

llvm::Error Report::write() {
  if (!is_wanted() || lines_.empty()) return llvm::Error::success();
  std::error_code error;
  if (to_ == "-") {
    llvm::errs() << lines_;
  } else {
    llvm::raw_fd_ostream out(to_, error, llvm::sys::fs::OF_Append);
    if (!error) {
      // In one call, so that the lines of compilers that run at the same time do not mix.
      out.SetUnbuffered();
      out << lines_;
      error = out.error();
      out.clear_error();
    }
  }
  lines_.clear();
  if (!error) return llvm::Error::success();
  return llvm::createStringError(error,
                                 "-ffar-report: cannot write to '%s': %s; name a file in a folder that can be written",
                                 to_.c_str(), error.message().c_str());
}

}  // namespace farheap::passes
