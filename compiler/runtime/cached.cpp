// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cached.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <farheap/store.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/flush_hook.hpp"
#include "base/options.hpp"
#include "base/units.hpp"
#include "far.hpp"

namespace farheap::translate {
namespace {

constexpr char kLibraryName[] = "libfarheap-preload.so";
constexpr char kDefaultCache[] = "64M";
// Says to the program that is executed anew that it is. "own": what was set for it is not for what it starts.
constexpr char kAnew[] = "FARHEAP_FAR_ANEW";
constexpr char kAnewAlone[] = "own";
constexpr char kAnewWithOthers[] = "follow";
constexpr char kStore[] = "FARHEAP_STORE";
constexpr char kMemory[] = "FARHEAP_MEMORY";
constexpr char kFollowExec[] = "FARHEAP_FOLLOW_EXEC";
constexpr char kPreload[] = "LD_PRELOAD";

[[noreturn]] void cannot_begin(std::string on, std::string why, std::string remedy,
                               ErrorCode code = ErrorCode::kInvalidArgument) {
  die({code, "cannot begin mode cached", std::move(on), std::move(why), std::move(remedy)});
}

base::FlushHook* find_hook() {
  static auto* const found = reinterpret_cast<base::FlushHook*>(dlsym(RTLD_DEFAULT, base::kFlushHookName));
  return found;
}

// ---- whether this library came with the program

int find_needed(dl_phdr_info* program, std::size_t, void* soname) {
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const auto& part = program->dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(program->dlpi_addr + part.p_vaddr);
  }
  if (entry == nullptr) return 0;
  const char* names = nullptr;
  for (const auto* at = entry; at->d_tag != DT_NULL; ++at) {
    if (at->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(at->d_un.d_ptr);
  }
  if (names == nullptr) return 0;
  for (const auto* at = entry; at->d_tag != DT_NULL; ++at) {
    if (at->d_tag != DT_NEEDED) continue;
    const std::string_view needed = names + at->d_un.d_val;
    if (needed.substr(needed.rfind('/') + 1) == static_cast<const char*>(soname)) return 1;
  }
  return -1;  // the program comes first, and nothing else counts
}

// Otherwise it may have come by dlopen(), in the middle of a program that must not begin again.
bool is_of_the_program(const std::string& own_file) {
  const std::string name = own_file.substr(own_file.rfind('/') + 1);
  return dl_iterate_phdr(find_needed, const_cast<char*>(name.c_str())) == 1;
}

std::string own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&is_of_the_program), &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

// ---- what the program is executed with

// As `farheap run` finds it: where the option says, else beside this library, installed or in the build tree.
std::string find_preload_library(const base::Options& options, const std::string& own) {
  const auto folder = std::filesystem::path(own).parent_path();
  std::vector<std::filesystem::path> places{folder / kLibraryName, folder / ".." / "src" / "preload" / kLibraryName};
  if (!options.preload.empty()) places = {options.preload};
  std::string tried;
  for (const auto& place : places) {
    std::error_code error;
    const auto whole = std::filesystem::canonical(place, error);
    tried += (tried.empty() ? "" : " ") + place.lexically_normal().string();
    if (error || access(whole.c_str(), R_OK) != 0) continue;
    // The loader splits LD_PRELOAD at these and has no way to quote them.
    if (whole.string().find_first_of(" :") != std::string::npos) {
      cannot_begin(whole, "the path of the preload library has a blank or a colon in it",
                   "install Farheap in a folder without them");
    }
    return whole;
  }
  cannot_begin(tried, "the preload library is not there",
               "install Farheap whole, or name the library with FARHEAP_PRELOAD=", ErrorCode::kNotFound);
}

// A program may change its folder before the store is opened.
std::string absolute_store(const std::string& uri) {
  const auto colon = uri.find(':');
  if (colon == std::string::npos || uri.find('=') < colon) return uri;
  const std::string decorated = uri.substr(0, colon);
  const std::string engine = decorated.substr(decorated.rfind('+') + 1);  // npos + 1 is 0
  const bool is_path = engine == "file" || engine == "lmdb" || engine == "rocksdb";
  const char first = colon + 1 < uri.size() ? uri[colon + 1] : '\0';
  if (!is_path || first == '\0' || first == '/' || first == '?') return uri;
  std::error_code ignored;
  return uri.substr(0, colon + 1) + std::filesystem::current_path(ignored).string() + "/" + uri.substr(colon + 1);
}

// Said now, in one line, and not when the first page is about to leave.
void check_store(const std::string& uri, const base::Options& options) {
  const auto store = open_store(uri, {.lifetime = Lifetime::kScratch,
                                      .use_io_uring = !options.disable.has(base::Feature::kIoUring),
                                      .encrypt_key_file = options.encrypt_key_file,
                                      .password_file = options.store_password_file});
  if (!store) die_without_store(store.error());
}

std::string cache_size() {
  const std::string text = variable("FARHEAP_FAR_CACHE", kDefaultCache);
  const std::string shown = "FARHEAP_FAR_CACHE=" + text;
  const auto bytes = base::parse_size(text);
  if (!bytes) cannot_begin(shown, bytes.error().why, "write it as 64M or 67108864");
  if (*bytes < base::kLeastBudgetBytes) {
    const std::string least = base::format_size(base::kLeastBudgetBytes);
    cannot_begin(shown, "the memory of a paged heap is at least " + least,
                 fmt::format("say {}M or more", base::kLeastBudgetBytes / base::kMiB));
  }
  const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * base::kPageBytes;
  if (*bytes > machine) {
    const std::string words = fmt::format(
        "farheap: WARNING: {} is more than the memory of this machine, {}: nothing goes to the store before the "
        "machine "
        "is full; say {}M or less\n",
        shown, base::format_size(machine), machine / base::kMiB);
    (void)!write(STDERR_FILENO, words.data(), words.size());  // what cannot be written has nobody to read it
  }
  return std::to_string(*bytes);
}

using Variables = std::vector<std::string>;

void set(Variables& variables, std::string_view name, const std::string& value) {
  const std::string start = std::string(name) + "=";
  std::erase_if(variables, [&](const std::string& line) { return line.starts_with(start); });
  variables.push_back(start + value);
}

Variables variables_anew(const std::string& own) {
  auto loaded = base::load_options(base::environment_lines());
  if (!loaded) die(loaded.error());
  const std::string library = find_preload_library(loaded->options, own);
  const std::string store = absolute_store(variable("FARHEAP_FAR_STORE", "mem:"));
  const std::string memory = cache_size();
  check_store(store, loaded->options);
  Variables variables;
  for (auto at = base::environment_lines(); *at != nullptr; ++at) variables.emplace_back(*at);
  set(variables, kStore, store);
  set(variables, kMemory, memory);
  const bool follows = base::environment(kFollowExec) != nullptr && loaded->options.follow_exec;
  set(variables, kFollowExec, follows ? "on" : "off");
  set(variables, kAnew, follows ? kAnewWithOthers : kAnewAlone);
  const std::string others = variable(kPreload, "");
  set(variables, kPreload, others.empty() ? library : library + ":" + others);
  return variables;
}

// By its name, which is then what the process is called; by the kernel's link where that leads nowhere any more.
std::string own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return !error && access(path.c_str(), X_OK) == 0 ? path.string() : "/proc/self/exe";
}

void execute_anew(char** words) {
  const std::string own = own_file();
  if (!is_of_the_program(own)) {
    cannot_begin(own, "a library of the program was translated, and the program itself was not",
                 "run it with farheap run, or with FARHEAP_FAR_MODE=direct");
  }
  if (base::environment(kAnew) != nullptr) {
    cannot_begin(variable(kPreload, ""), "the loader did not load this library when the program was executed anew",
                 "see what it says with LD_DEBUG=files, or use FARHEAP_FAR_MODE=direct", ErrorCode::kUnavailable);
  }
  Variables variables = variables_anew(own);
  std::vector<char*> lines;
  for (auto& line : variables) lines.push_back(line.data());
  lines.push_back(nullptr);
  const std::string program = own_program();
  (void)execve(program.c_str(), words, lines.data());
  die(errno_error(errno, "cannot begin mode cached", program, "use FARHEAP_FAR_MODE=direct"));
}

// What was set for this program alone is not for those that it starts.
void tidy_up() {
  const std::string anew = variable(kAnew, "");
  if (anew.empty()) return;
  unsetenv(kAnew);
  if (anew != kAnewAlone) return;
  for (const char* const name : {kStore, kMemory, kFollowExec}) unsetenv(name);
}

__attribute__((constructor)) void begin(int, char** words, char**) {
  if (!is_cached()) return;
  find_hook() == nullptr ? execute_anew(words) : tidy_up();
}

bool find_mode() {
  const std::string mode = variable("FARHEAP_FAR_MODE", find_hook() != nullptr ? "cached" : "direct");
  if (mode != "direct" && mode != "cached") {
    die({ErrorCode::kInvalidArgument, "cannot begin the far heap", "FARHEAP_FAR_MODE=" + mode, "there is no such mode",
         "say direct or cached"});
  }
  return mode == "cached";
}

}  // namespace

bool is_cached() {
  static const bool found = find_mode();
  return found;
}

Status flush_pages() {
  std::array<char, 2048> why{};
  if (find_hook()(why.data(), why.size())) return {};
  return fail(ErrorCode::kIo, "cannot write the heap to its store", "__farheap_flush()", why.data());
}

}  // namespace farheap::translate
