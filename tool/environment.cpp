// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "environment.hpp"

#include <fmt/format.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/environment.hpp"
#include "base/uri_path.hpp"
#include "base/without_secrets.hpp"
#include "os/uffd_abi.hpp"
#include "store/uri.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

constexpr char kLibraryName[] = "libfarheap-preload.so";

// "NAME=value" becomes "NAME=".
void overwrite_value(char* line) {
  char* const value = std::strchr(line, '=');
  if (value != nullptr) explicit_bzero(value + 1, std::strlen(value + 1));
}

std::string readable(const std::filesystem::path& path) {
  std::error_code error;
  const auto whole = std::filesystem::canonical(path, error);
  return !error && access(whole.c_str(), R_OK) == 0 ? whole.string() : std::string();
}

}  // namespace

void hide_passwords_in_environment() {
  std::vector<std::pair<std::string, std::string>> secret;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view line = *at;
    if (!line.starts_with("FARHEAP_") || base::without_secrets(line) == line) continue;
    const auto equals = line.find('=');
    secret.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    overwrite_value(*at);
  }
  for (const auto& [name, value] : secret) setenv(name.c_str(), value.c_str(), 1);
}

void take_from_environment(const std::string& name) {
  for (char** at = environ; *at != nullptr; ++at) {
    if (std::string_view(*at).starts_with(name + "=")) overwrite_value(*at);
  }
  unsetenv(name.c_str());
}

Result<base::LoadedOptions> load_tool_options(const std::vector<std::string>& settings) {
  auto loaded = base::load_options(base::environment_lines(), settings);
  if (!loaded) return loaded;
  for (const auto& warning : loaded->warnings) complain(warning);
  base::set_log_level(loaded->options.log);
  return loaded;
}

Variables own_environment() {
  Variables variables;
  for (auto at = base::environment_lines(); *at != nullptr; ++at) variables.emplace_back(*at);
  return variables;
}

void remove_variable(Variables& variables, std::string_view name) {
  const std::string start = std::string(name) + "=";
  std::erase_if(variables, [&](const std::string& line) { return line.starts_with(start); });
}

void set_variable(Variables& variables, std::string_view name, std::string_view value) {
  remove_variable(variables, name);
  variables.push_back(std::string(name) + "=" + std::string(value));
}

void load_before_others(Variables& variables, const std::string& library) {
  const char* const others = base::environment("LD_PRELOAD");
  const bool is_alone = others == nullptr || *others == '\0';
  set_variable(variables, "LD_PRELOAD", is_alone ? library : library + ":" + others);
}

// The loader splits LD_PRELOAD at some characters, and has no way to quote them.
static Status check_loadable(const std::string& found) {
  if (found.find_first_of(" :") != std::string::npos) {
    return fail(ErrorCode::kInvalidArgument, "cannot load the preload library", found,
                "its path has a blank or a colon in it", "install Farheap in a folder without them");
  }
  // And it puts something else in the place of these (ld.so(8)).
  for (const std::string_view token : {"ORIGIN", "LIB", "PLATFORM"}) {
    if (found.find(fmt::format("${}", token)) == std::string::npos &&
        found.find(fmt::format("${{{}}}", token)) == std::string::npos) {
      continue;
    }
    return fail(ErrorCode::kInvalidArgument, "cannot load the preload library", found,
                fmt::format("the loader would replace the ${} in its path", token),
                "install Farheap in a folder without it");
  }
  return {};
}

Result<std::string> find_preload_library(const base::Options& options) {
  std::string found;
  std::string tried = options.preload;
  if (!options.preload.empty()) {
    found = readable(options.preload);
  } else {
    std::error_code error;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    const std::filesystem::path places[] = {folder / FARHEAP_LIBRARY_FROM_TOOL / kLibraryName,
                                            folder / ".." / "src" / "preload" / kLibraryName};
    for (const auto& place : places) {
      if (found.empty()) found = readable(place);
      tried += (tried.empty() ? "" : " ") + place.lexically_normal().string();
    }
  }
  if (found.empty()) {
    return fail(ErrorCode::kNotFound, "cannot find the preload library", tried, "it is not there",
                "install Farheap whole, or name it with FARHEAP_PRELOAD=" + std::string(kLibraryName));
  }
  if (const Status loadable = check_loadable(found); !loadable) return fail(loadable.error());
  return found;
}

Result<std::string> find_hints_library(const base::Options& options) {
  constexpr char kName[] = "libfarheap-hints.so";
  const auto preload = find_preload_library(options);
  if (!preload) return preload;
  const auto folder = std::filesystem::path(*preload).parent_path();
  const std::filesystem::path places[] = {folder / kName, folder / ".." / "hints" / kName};
  for (const auto& place : places) {
    if (auto found = readable(place); !found.empty()) return found;
  }
  return fail(ErrorCode::kNotFound, "cannot find the library of kernel hints", (folder / kName).string(),
              "it is not there", "install Farheap whole");
}

std::vector<Grant> userfault_grants() {
  return {
      {"sudo sysctl vm.unprivileged_userfaultfd=1",
       "every user, until the next boot; to keep it: echo vm.unprivileged_userfaultfd=1 | "
       "sudo tee /etc/sysctl.d/70-farheap.conf"},
      {"sudo chgrp \"$(id -gn)\" /dev/userfaultfd && sudo chmod 660 /dev/userfaultfd",
       "your group, until the next boot (Linux 6.1 and later)"},
      {"echo 'KERNEL==\"userfaultfd\", GROUP=\"'\"$(id -gn)\"'\", MODE=\"0660\"' | "
       "sudo tee /etc/udev/rules.d/70-farheap.rules && sudo udevadm trigger /dev/userfaultfd",
       "your group, for good"},
  };
}

Status check_userfault(const os::KernelFeatures& features) {
  if (features.kernel_faults && (features.move || features.write_protect)) return {};
  if (features.kernel_faults) {
    return fail(ErrorCode::kUnavailable, "cannot page a program", "userfaultfd",
                "this kernel has neither write protection (Linux 5.7) nor UFFDIO_MOVE (6.8)", "use a newer kernel");
  }
  std::string remedy = "an administrator can grant it with one of:";
  for (const auto& grant : userfault_grants()) remedy += "\n    " + grant.command + "\n        (" + grant.meaning + ")";
  const int why = features.userfault_errno;
  return fail(ErrorCode::kPermission, "cannot page a program",
              "this user may not have a userfaultfd that serves system calls",
              why != 0 ? strerror(why) : "option disable=kernel_faults", std::move(remedy));
}

static std::string_view engine_of(std::string_view uri) {
  const std::string_view decorated = uri.substr(0, uri.find(':'));
  return decorated.substr(decorated.rfind('+') + 1);  // npos + 1 is 0
}

bool is_in_memory(const std::string& path) {
  constexpr long kTmpfs = 0x01021994, kRamfs = 0x858458f6;
  struct statfs system{};
  if (statfs(path.c_str(), &system) != 0) return false;
  return system.f_type == kTmpfs || system.f_type == kRamfs;
}

Status check_store_saves_memory(std::string_view uri) {
  if (const auto parts = store::split_uri(uri)) return check_store_saves_memory(parts->pages);
  const std::string_view decorators = uri.substr(0, uri.find(':'));
  std::string place(uri.substr(std::min(uri.size(), decorators.size() + 1)));
  place.resize(std::min(place.size(), place.find('?')));
  place = base::unescape_path(place);
  if (engine_of(uri) == "file" && is_in_memory(place)) {
    return fail(ErrorCode::kInvalidArgument, "this store saves no memory", std::string(uri),
                "its file system is kept in memory (tmpfs)", "use --store file:DIR with a folder on a disk");
  }
  if (engine_of(uri) != "mem" || decorators.find("compress+") != std::string_view::npos) return {};
  return fail(
      ErrorCode::kInvalidArgument, "this store saves no memory", std::string(uri),
      "what leaves the heap stays in the process, where the budget counts it: the program gets slower, not smaller",
      "use --store file:DIR, or compress+mem: for data that packs well");
}

std::string absolute_store(std::string_view uri, const std::string& folder) {
  if (const auto parts = store::split_uri(uri)) {
    return store::SplitUri{absolute_store(parts->pages, folder), absolute_store(parts->sync, folder)}.text();
  }
  const auto colon = uri.find(':');
  if (colon == std::string_view::npos) return std::string(uri);
  const std::string_view engine = engine_of(uri);
  const std::string_view place = uri.substr(colon + 1);
  const bool is_path = engine == "file" || engine == "lmdb" || engine == "rocksdb";
  if (!is_path || place.empty() || place[0] == '/' || place[0] == '?') return std::string(uri);
  return std::string(uri.substr(0, colon + 1)) + base::escape_path(folder) + "/" + std::string(place);
}

}  // namespace farheap::tool
