// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file behind a command: found as the shell would find it, and looked at before it is run, because a program
// that the preload library cannot enter would run without Farheap and say nothing.
//
// Thread-safety: pure functions of the file system and the environment.
#pragma once

#include <farheap/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::tool {

// The path of `command`: itself if it has a slash, else the first executable of that name in `search_path`
// (the value of PATH). kNotFound, or kPermission when it is there and not executable.
[[nodiscard]] Result<std::string> find_program(const std::string& command, std::string_view search_path);

// Why Farheap cannot enter this program; scripts are followed to their interpreter. Refused are programs
// without a dynamic loader, for another machine or C library, and those that the kernel runs with more rights
// than the caller's (setuid, setgid, file capabilities), because LD_PRELOAD is ignored there.
// `words`: the whole command. If the program is the dynamic loader itself, they tell what it is to load.
[[nodiscard]] Status check_program(const std::string& path, const std::vector<std::string>& words = {});

// The program that the dynamic loader is to run, by the words after its name; empty if it only shows something.
[[nodiscard]] std::string program_of_loader(std::span<const std::string> words);
// The same of a whole command; empty, too, if the program at `path` is not the loader of this machine's C library.
[[nodiscard]] std::string loaded_by(const std::string& path, const std::vector<std::string>& words);

// The first bytes of an ELF file, read for what matters here.
struct ElfSummary {
  bool is_64_bit = false;
  unsigned machine = 0;     // EM_X86_64, ...
  std::string interpreter;  // empty: no dynamic loader, a static program
};
// kInvalidArgument when the bytes are no ELF file, or one that is cut off or contradicts itself.
[[nodiscard]] Result<ElfSummary> read_elf(std::string_view bytes);

// The interpreter named by a "#!" line; empty when there is none.
[[nodiscard]] std::string script_interpreter(std::string_view bytes);

}  // namespace farheap::tool
