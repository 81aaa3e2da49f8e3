// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tool finds around itself: the preload library, the options of this call, and what an administrator has
// to grant. Shared by `run` and `doctor`, so that both say the same.
//
// Thread-safety: the tool has one thread.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.hpp"
#include "os/kernel_features.hpp"

namespace farheap::tool {

// The options of the environment and `settings`; unknown variables are reported on standard error.
[[nodiscard]] Result<base::LoadedOptions> load_tool_options(const std::vector<std::string>& settings);

// From what /proc shows of this process and those it forks: passwords in FARHEAP_ variables. The variables stay.
// Requires: environ is as the kernel gave it.
void hide_passwords_in_environment();
// The same of this variable, which is unset.
void take_from_environment(const std::string& name);

// An environment for a program: "NAME=value".
using Variables = std::vector<std::string>;
[[nodiscard]] Variables own_environment();
void remove_variable(Variables& variables, std::string_view name);
void set_variable(Variables& variables, std::string_view name, std::string_view value);
// Programs that have these variables load this library, and those that were to be loaded already behind it.
void load_before_others(Variables& variables, const std::string& library);

// The preload library: where the option says, else beside the installed tool, else in the build tree.
[[nodiscard]] Result<std::string> find_preload_library(const base::Options& options);
// The library of kernel hints: beside the preload library.
[[nodiscard]] Result<std::string> find_hints_library(const base::Options& options);

// The ways to let this user have a userfaultfd that serves system calls, each a command and what it means.
struct Grant {
  std::string command;
  std::string meaning;
};
[[nodiscard]] std::vector<Grant> userfault_grants();

// Whether programs can be paged here; the error names every grant.
[[nodiscard]] Status check_userfault(const os::KernelFeatures& features);

// Whether the file system of `path` lives in memory (tmpfs).
[[nodiscard]] bool is_in_memory(const std::string& path);

// Whether what leaves the heap leaves memory as well. The error is no reason not to run: the store is then for trying
// things out.
[[nodiscard]] Status check_store_saves_memory(std::string_view uri);

// "file:data" becomes "file:/here/data": processes of the run may change their folder before they open the store.
[[nodiscard]] std::string absolute_store(std::string_view uri, const std::string& folder);

}  // namespace farheap::tool
