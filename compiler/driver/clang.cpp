// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "clang.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

namespace farheap::compiler {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCounts = "libfarheap-counts.a";
constexpr std::string_view kGuards = "libfarheap-guards.a";
constexpr std::string_view kTranslate = "libfarheap-translate.so";
constexpr std::string_view kContexts = "libfarheap-contexts.so";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// As a shell finds it.
std::optional<fs::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? std::optional<fs::path>(name) : std::nullopt;
  const std::string path = environment("PATH");
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const fs::path folder = end == at ? "." : path.substr(at, end - at);
    if (is_program(folder / name)) return folder / name;
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<int> number_at_start(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end != text.data() ? std::optional(number) : std::nullopt;
}

// What a compiler says it is, by the first line of its answer.
std::string answer_of(const fs::path& program) {
  std::FILE* pipe = popen((quoted({program, "--version"}) + " 2>/dev/null").c_str(), "re");
  if (pipe == nullptr) return {};
  std::array<char, 256> text{};
  const std::size_t length = std::fread(text.data(), 1, text.size(), pipe);
  while (std::fgetc(pipe) != EOF) {  // or it would be ended by a signal
  }
  pclose(pipe);
  const std::string_view answer(text.data(), length);
  return std::string(answer.substr(0, answer.find('\n')));
}

// From its name, clang-19; where that says nothing, it is asked. Nothing, with its answer, if it is no clang.
std::optional<int> major_of(const fs::path& program, std::string& answer) {
  constexpr std::string_view kName = "clang-", kSays = "clang version ";
  const std::string name = program.filename();
  if (name.starts_with(kName)) {
    if (const auto number = number_at_start(std::string_view(name).substr(kName.size()))) return number;
  }
  answer = answer_of(program);
  const std::size_t at = answer.find(kSays);
  return at == answer.npos ? std::nullopt : number_at_start(std::string_view(answer).substr(at + kSays.size()));
}

// By major version.
std::map<int, fs::path> find_passes(const std::vector<fs::path>& folders) {
  constexpr std::string_view kBefore = "farheap-passes-";
  std::map<int, fs::path> found;
  for (const fs::path& folder : folders) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(kBefore) || !name.ends_with(".so")) continue;
      if (const auto major = number_at_start(std::string_view(name).substr(kBefore.size()))) {
        found.emplace(*major, entry.path());
      }
    }
  }
  return found;
}

std::string joined(const auto& all, auto&& text_of) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "" : ", ") + text_of(one);
  return text;
}

std::string majors_of(const std::map<int, fs::path>& passes) {
  return joined(passes, [](const auto& one) { return std::to_string(one.first); });
}

std::optional<fs::path> find_clang(int major) {
  const std::string name = "clang-" + std::to_string(major);
  if (auto found = find_program(name)) return found;
  const fs::path debian = fmt::format("/usr/lib/llvm-{}/bin/clang", major);
  return is_program(debian) ? std::optional(debian) : std::nullopt;
}

auto no_clang(const fs::path& program, const std::string& answer) {
  return fail(ErrorCode::kInvalidArgument, "farcc: cannot use FARCC_CLANG", program.string(),
              answer.empty() ? "it does not answer --version as clang does"
                             : "it is no clang: to --version it answers '" + answer + "'",
              "name a clang, which alone can load the passes, or unset FARCC_CLANG, and farcc looks for one itself");
}

Result<Clang> chosen_by_user(const std::string& name, const std::map<int, fs::path>& passes) {
  const auto program = find_program(name);
  if (!program) {
    return fail(ErrorCode::kNotFound, "farcc: cannot run the clang of FARCC_CLANG", name, "there is no such program",
                "unset FARCC_CLANG, and farcc looks for one itself");
  }
  std::string answer;
  const auto major = major_of(*program, answer);
  if (!major) return no_clang(*program, answer);
  const auto found = passes.find(*major);
  if (found == passes.end()) {
    return fail(ErrorCode::kUnavailable, "farcc: there are no passes for this clang", *program,
                fmt::format("it is version {}, and the passes here are for {}", *major, majors_of(passes)),
                fmt::format("apt install clang-{}, and leave FARCC_CLANG unset; or build Farheap with llvm-{}-dev",
                            passes.rbegin()->first, *major));
  }
  return Clang{*program, *major, found->second};
}

void add(std::vector<std::string>& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }

// For cc1 only, so that an assembler file on the same command line is no obstacle.
void add_pass_option(std::vector<std::string>& words, const std::string& option) {
  add(words, {"-Xclang", "-mllvm", "-Xclang", option});
}

// The content's hash, too: ccache between farcc and clang sees the command and not the file.
void add_guards(std::vector<std::string>& words, const std::string& guards) {
  if (guards.empty()) return;
  add_pass_option(words, "-farheap-guards=" + guards);
  std::error_code error;  // what is no file the passes refuse, with words
  if (guards == kRecord || !fs::is_regular_file(guards, error)) return;
  std::ifstream file(guards, std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(file), {});
  add_pass_option(words, fmt::format("-farheap-guards-hash={:x}", std::hash<std::string>{}(content)));
}

// For `#if` in the source: __FARCC_TRANSLATE_HEAP__ and the like.
void add_macros(std::vector<std::string>& words, std::string level) {
  words.emplace_back("-D__FARCC__=1");
  if (level == "translate-all") words.emplace_back("-D__FARCC_TRANSLATE_HEAP__=1");  // its heap is, too
  std::replace(level.begin(), level.end(), '-', '_');
  std::transform(level.begin(), level.end(), level.begin(), [](unsigned char c) { return std::toupper(c); });
  words.push_back("-D__FARCC_" + level + "__=1");
}

void add_passes(std::vector<std::string>& words, const Wishes& wishes, const fs::path& passes) {
  // Loaded twice, which is once: for its options to be known, and for its passes to be run.
  add(words, {"-Xclang", "-load", "-Xclang", passes, "-Xclang", "-fpass-plugin=" + passes.string()});
  words.emplace_back("-Wno-error=backend-plugin");  // what the passes warn of breaks nobody's build
  add_pass_option(words, "-farheap-level=" + wishes.level);
  if (!wishes.report.empty()) add_pass_option(words, "-farheap-report=" + wishes.report);
  if (wishes.threshold != 0) add_pass_option(words, "-farheap-threshold=" + std::to_string(wishes.threshold));
  if (wishes.executed) add_pass_option(words, "-farheap-executed");
  add_guards(words, wishes.guards);
  if (wishes.stack) add_pass_option(words, "-farheap-stack");
  if (wishes.globals) add_pass_option(words, "-farheap-globals");
  for (const std::string& only : wishes.only) add_pass_option(words, "-farheap-only=" + only);
  for (const std::string& leave : wishes.leave) add_pass_option(words, "-farheap-leave=" + leave);
  for (const std::string& borrow : wishes.borrow) add_pass_option(words, "-farheap-borrow=" + borrow);
}

// What has come to the linker as bitcode without passes goes through them there. lld reads options before it loads
// passes, so that this is for the usual level only; and only for the lld that belongs to this clang.
void add_passes_at_link(std::vector<std::string>& words, const Clang& clang) {
  std::error_code error;
  const fs::path beside = fs::canonical(clang.program, error).parent_path() / "ld.lld";
  if (!error && is_program(beside)) add(words, {"-Wl,--load-pass-plugin=" + clang.passes.string()});
}

Status add_counts(std::vector<std::string>& words, const std::vector<fs::path>& folders, std::string_view name,
                  const char* option) {
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path library = folder / name;
    if (!fs::exists(library, error)) continue;
    // Whole: nothing in the program asks for it.
    add(words, {"-Wl,--whole-archive", "-Xlinker", library, "-Wl,--no-whole-archive"});
    return {};
  }
  return fail(ErrorCode::kNotFound, "farcc: cannot link what writes the counts", std::string(name),
              "it is not in " + joined(folders, [](const fs::path& folder) { return folder.string(); }),
              fmt::format("install Farheap whole, or leave {} out", option));
}

// Shared, so that a program and its libraries have one far heap, or one context tree, between them.
Status add_runtime(std::vector<std::string>& words, const std::vector<fs::path>& folders, const Wishes& wishes) {
  const std::string_view name = wishes.translates() ? kTranslate : kContexts;
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path library = folder / name;
    if (!fs::exists(library, error)) continue;
    // Before all objects, which some linkers are told to leave unneeded libraries out for.
    add(words, {"-Wl,--push-state,--no-as-needed", "-Xlinker", library, "-Wl,--pop-state", "-Xlinker", "-rpath",
                "-Xlinker", folder});
    return {};
  }
  return fail(ErrorCode::kNotFound, "farcc: cannot link the runtime of -ffar=" + wishes.level, std::string(name),
              "it is not in " + joined(folders, [](const fs::path& folder) { return folder.string(); }),
              "install Farheap whole, or choose another level");
}

Status check_runtime(const CommandLine& line) {
  const auto refused = [&line](const char* option, const char* why, const char* remedy) {
    return fail(ErrorCode::kInvalidArgument, "farcc: -ffar=" + line.wishes.level + " does not go with", option, why,
                remedy);
  };
  if (line.is_static && line.links) {
    return refused("-static", "its runtime is a shared library, one for the program and all of its libraries",
                   "link dynamically");
  }
  if (line.sanitizes) {
    return refused("-fsanitize",
                   line.wishes.translates()
                       ? "what the sanitizer adds looks at far addresses, behind which there is no memory"
                       : "the sanitizer has an allocator of its own",
                   "use -ffar=hint or none with it");
  }
  return {};
}

}  // namespace

std::vector<fs::path> library_folders() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {own, (own / FARHEAP_LIBRARY_FROM_TOOL).lexically_normal()};
}

Result<Clang> choose_clang(const std::vector<fs::path>& folders) {
  const std::map<int, fs::path> passes = find_passes(folders);
  if (passes.empty()) {
    return fail(ErrorCode::kNotFound, "farcc: cannot find the passes", "farheap-passes-*.so",
                "there is none in " + joined(folders, [](const fs::path& folder) { return folder.string(); }),
                "install Farheap whole; building it needs llvm-19-dev");
  }
  if (const std::string name = environment("FARCC_CLANG"); !name.empty()) return chosen_by_user(name, passes);
  for (auto newest = passes.rbegin(); newest != passes.rend(); ++newest) {
    if (const auto program = find_clang(newest->first)) return Clang{*program, newest->first, newest->second};
  }
  if (const auto plain = find_program("clang")) {
    std::string answer;
    const auto major = major_of(*plain, answer);
    const auto found = major ? passes.find(*major) : passes.end();
    if (found != passes.end()) return Clang{*plain, found->first, found->second};
    if (major) return chosen_by_user(*plain, passes);
  }
  return fail(ErrorCode::kNotFound, "farcc: cannot find a clang for the passes",
              joined(passes, [](const auto& one) { return "clang-" + std::to_string(one.first); }),
              "none is in PATH or in /usr/lib/llvm-*/bin",
              fmt::format("apt install clang-{}, or name one with FARCC_CLANG", passes.rbegin()->first));
}

Result<fs::path> any_clang() {
  if (const std::string name = environment("FARCC_CLANG"); !name.empty()) {
    if (const auto program = find_program(name)) {
      std::string answer;
      if (major_of(*program, answer)) return *program;
      return no_clang(*program, answer);
    }
  } else {
    for (int major = 40; major >= 14; --major) {
      if (const auto program = find_clang(major)) return *program;
    }
    if (const auto program = find_program("clang")) return *program;
  }
  return fail(ErrorCode::kNotFound, "farcc: cannot find a clang", "clang", "none is in PATH or in /usr/lib/llvm-*/bin",
              "apt install clang-19, or name one with FARCC_CLANG");
}

Result<std::vector<std::string>> command(const CommandLine& line, bool cxx) {
  const std::vector<fs::path> folders = library_folders();
  auto chosen = choose_clang(folders);
  const bool plain = line.wishes.level == "none" || line.is_internal;
  if (!chosen && plain) {
    // Where nothing is added any clang will do.
    chosen = any_clang().map([](const fs::path& program) { return Clang{program, 0, {}}; });
  }
  if (!chosen) return fail(chosen.error());
  std::vector<std::string> words = split_response(environment("FARCC_LAUNCHER"));
  words.push_back(chosen->program);
  if (line.is_internal) {
    words.insert(words.end(), line.clang.begin(), line.clang.end());
    return words;
  }
  if (cxx) words.emplace_back("--driver-mode=g++");
  if (!plain) {
    words.emplace_back("--start-no-unused-arguments");  // what only links compiles nothing, and the other way round
    add_macros(words, line.wishes.level);
    add_passes(words, line.wishes, chosen->passes);
    if (line.lto_by_lld && line.wishes.is_plain_hint()) add_passes_at_link(words, *chosen);
    if (line.links && line.wishes.level == "count" && line.wishes.executed) {
      if (auto added = add_counts(words, folders, kCounts, "-ffar-count=executed"); !added) return fail(added.error());
    }
    if (line.links && line.wishes.guards == kRecord) {
      if (auto added = add_counts(words, folders, kGuards, "-ffar-guard=record"); !added) return fail(added.error());
    }
    if (line.wishes.has_runtime()) {
      if (auto able = check_runtime(line); !able) return fail(able.error());
      if (line.links) {
        if (auto added = add_runtime(words, folders, line.wishes); !added) return fail(added.error());
      }
    }
    words.emplace_back("--end-no-unused-arguments");
  }
  words.insert(words.end(), line.clang.begin(), line.clang.end());
  return words;
}

}  // namespace farheap::compiler
