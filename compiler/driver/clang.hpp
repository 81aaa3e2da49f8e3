// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which clang is run, with which passes, and with which words.
//
// Thread-safety: functions of their arguments, the environment and the file system.
#pragma once

#include <farheap/result.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace farheap::compiler {

struct Clang {
  std::filesystem::path program;
  int major = 0;
  std::filesystem::path passes;  // the plugin of that major version
};

// Where the passes and the counting library are, seen from the program that runs: beside it in a build tree, in the
// library folder of an installation.
[[nodiscard]] std::vector<std::filesystem::path> library_folders();

// $FARCC_CLANG, or else the newest clang for which there are passes. An error says which package is missing.
[[nodiscard]] Result<Clang> choose_clang(const std::vector<std::filesystem::path>& folders);

// $FARCC_CLANG, or any clang: for what needs no passes.
[[nodiscard]] Result<std::filesystem::path> any_clang();

// The whole command, with $FARCC_LAUNCHER in front of it.
[[nodiscard]] Result<std::vector<std::string>> command(const CommandLine& line, bool cxx);

}  // namespace farheap::compiler
