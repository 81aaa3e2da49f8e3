// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names for the code places of a profile: function, source file and line, by the debugging information of the file,
// wherever libdw finds it (in it, or in /usr/lib/debug by its build-id); otherwise by its symbols. (elfutils' libdw. A
// build without it names file and offset only.)
//
// Thread-safety: one thread uses the object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace farheap::tool {

struct CodeName {
  std::string function;  // demangled; empty: not known
  std::string source;    // as the compiler had it; empty: not known
  int line = 0;
  std::string file;  // the program or library; empty: code in no file
  std::uint64_t offset = 0;

  // "stream (lbm.c:214)", "memcpy (libc.so.6)", "libfoo.so.1+0x1234".
  [[nodiscard]] std::string text() const;
  // The same without the line, for stacks.
  [[nodiscard]] std::string function_text() const;
};

class CodeNames {
 public:
  // The files outlive the object.
  explicit CodeNames(const std::vector<profile::CodeFile>& files);
  ~CodeNames();
  CodeNames(const CodeNames&) = delete;
  CodeNames& operator=(const CodeNames&) = delete;

  // The innermost function first: the compiler may have put several, one into the other, where the instruction is.
  // At least one.
  [[nodiscard]] std::vector<CodeName> instruction(const profile::CodePlace& place) { return names(place, 0); }
  // Of the call that returns to the place.
  [[nodiscard]] std::vector<CodeName> call(const profile::CodePlace& returns_to) { return names(returns_to, 1); }
  // Files that are not as they were recorded: their code has no names.
  [[nodiscard]] std::vector<std::string> changed_files();

 private:
  struct Module;
  [[nodiscard]] Module& module_of(std::uint32_t file);
  [[nodiscard]] std::vector<CodeName> names(const profile::CodePlace& place, std::uint64_t before);

  const std::vector<profile::CodeFile>& files_;
  std::vector<std::unique_ptr<Module>> modules_;  // by file; null: not opened yet
};

}  // namespace farheap::tool
