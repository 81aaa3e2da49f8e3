// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command line of farcc: its own options, and everything else, which is clang's.
//
// Thread-safety: values and functions of their arguments.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::compiler {

// In place of a profile's name: record one.
inline constexpr std::string_view kRecord = "record";

// What farcc was asked for, by option or environment.
struct Wishes {
  std::string level = "hint";  // none, count, hint, guard, record, translate-heap, translate-all
  std::string report;          // a file, "-" for standard error, "" for none
  std::vector<std::string> only, leave, borrow;
  std::uint64_t threshold = 0;          // bytes; 0: what the passes think
  bool executed = false;                // count what is executed, too
  std::string guards;                   // level guard: kRecord, a profile, "" for all guards
  bool stack = false, globals = false;  // in the far heap, too
  bool print = false;                   // the command, and run nothing
  bool help = false;

  // A level whose programs have their memory in a store.
  [[nodiscard]] bool translates() const;
  // One whose programs are linked to a shared library of ours.
  [[nodiscard]] bool has_runtime() const;
  // Nothing but the level is chosen.
  [[nodiscard]] bool is_plain_hint() const;
};

struct CommandLine {
  Wishes wishes;
  std::vector<std::string> clang;     // the words that are left
  std::vector<std::string> warnings;  // of what was asked for in vain
  // What of them matters here.
  std::vector<std::string> inputs;  // files, as far as they can be told
  bool is_internal = false;         // clang calls itself: -cc1, -cc1as
  bool links = false;
  bool lto_by_lld = false;
  bool is_static = false;
  bool sanitizes = false;
};

// `words` are those after the program's name. Files named by @FILE are looked into; what has options of farcc in it is
// put in place of the name, all else is left to clang.
[[nodiscard]] Result<CommandLine> read_command_line(const std::vector<std::string>& words);

// The words in a response file: divided by blanks, with quotes and backslashes as clang takes them.
[[nodiscard]] std::vector<std::string> split_response(std::string_view text);

// For a shell to read.
[[nodiscard]] std::string quoted(const std::vector<std::string>& words);

}  // namespace farheap::compiler
