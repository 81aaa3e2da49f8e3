// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "link.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

extern char** environ;

namespace farheap::compiler {
namespace {

constexpr int kNotRun = 127;
constexpr int kSignalled = 128;
// Beginnings of files that have symbols: ELF, archives, bitcode.
constexpr std::array<std::string_view, 3> kObjects = {"\x7f\x45LF", "!<arch>", "BC\xc0\xde"};
constexpr std::array<std::string_view, 5> kSources = {".c", ".cc", ".cpp", ".cxx", ".C"};
// What translated code calls, by the first letters; hints and guards have other names.
constexpr std::string_view kOurs = "__farheap_";
constexpr std::array<std::string_view, 15> kTranslated = {"far", "get",    "put",     "copy",   "fill",
                                                          "new", "malloc", "calloc",  "free",   "delete",
                                                          "mem", "borrow", "realloc", "strdup", "move"};
constexpr std::string_view kCounts = "__farheap_link_with_ffar_guard_record";

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kObjects[1].size(), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const bool is_object = std::any_of(kObjects.begin(), kObjects.end(),
                                     [&text](std::string_view begin) { return text.starts_with(begin); });
  if (!file || !is_object) return {};
  return text.append(std::istreambuf_iterator<char>(file), {});
}

bool is_translated(std::string_view content) {
  for (std::size_t at = content.find(kOurs); at != content.npos; at = content.find(kOurs, at + 1)) {
    const std::string_view name = content.substr(at + kOurs.size());
    if (std::any_of(kTranslated.begin(), kTranslated.end(),
                    [name](std::string_view begin) { return name.starts_with(begin); })) {
      return true;
    }
  }
  return false;
}

void say(const std::string& file, const char* was, const char* lacks, const char* remedy) {
  fmt::print(stderr, "farcc: cannot link: {}: it was compiled with {}, and the link lacks {}; {}\n", file, was, lacks,
             remedy);
}

// The first object of each kind is enough.
void explain(const CommandLine& line) {
  bool looks_for_translated = !line.wishes.translates(), looks_for_counts = line.wishes.guards != kRecord;
  for (const std::string& file : line.inputs) {
    if (!looks_for_translated && !looks_for_counts) return;
    const std::string content = content_of(file);
    if (looks_for_translated && is_translated(content)) {
      looks_for_translated = false;
      say(file, "-ffar=translate-heap or translate-all", "the runtime of translated programs",
          "give the same -ffar= when linking, too");
    }
    if (looks_for_counts && content.find(kCounts) != content.npos) {
      looks_for_counts = false;
      say(file, "-ffar-guard=record", "what writes the profile",
          "give -ffar=guard -ffar-guard=record when linking, too, or compile it anew without");
    }
  }
}

}  // namespace

bool links_objects(const CommandLine& line) {
  return line.links && std::any_of(line.inputs.begin(), line.inputs.end(), [](const std::string& file) {
           const std::string ending = std::filesystem::path(file).extension();
           return std::find(kSources.begin(), kSources.end(), ending) == kSources.end();
         });
}

int link(const CommandLine& line, const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (const int error = posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ); error != 0) {
    fmt::print(stderr, "farcc: cannot run {}: {}\n", words[0], std::strerror(error));
    return kNotRun;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kNotRun;
  }
  if (WIFSIGNALED(status)) {
    (void)std::signal(WTERMSIG(status), SIG_DFL);
    (void)std::raise(WTERMSIG(status));  // as if this were clang
    return kSignalled + WTERMSIG(status);
  }
  if (WEXITSTATUS(status) != 0) explain(line);
  return WEXITSTATUS(status);
}

}  // namespace farheap::compiler
