// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

extern char** environ;

namespace farheap::compiler {
namespace {

constexpr int kNotRun = 127;
constexpr int kSignalled = 128;
constexpr int kLinesShown = 4;  // of the linker's, where a sentence follows that says why
// Beginnings of files that have symbols: ELF, archives, bitcode.
constexpr std::array<std::string_view, 3> kObjects = {"\x7f\x45LF", "!<arch>", "BC\xc0\xde"};
constexpr std::array<std::string_view, 5> kSources = {".c", ".cc", ".cpp", ".cxx", ".C"};
// What translated code calls, by the first letters; hints and guards have other names.
constexpr std::string_view kOurs = "__farheap_";
constexpr std::array<std::string_view, 15> kTranslated = {"far", "get",    "put",     "copy",   "fill",
                                                          "new", "malloc", "calloc",  "free",   "delete",
                                                          "mem", "borrow", "realloc", "strdup", "move"};
constexpr std::string_view kRecords = "__farheap_context_enter";
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

std::string sentence(const std::string& file, const char* was, const char* lacks, const char* remedy) {
  return fmt::format("farcc: cannot link: {}: it was compiled with {}, and the link lacks {}; {}\n", file, was, lacks,
                     remedy);
}

// Says what the link lacks; empty if that is not known. It stops at the first object of each kind.
std::string explanation(const CommandLine& line) {
  std::string said;
  bool looks_for_translated = !line.wishes.translates(), looks_for_counts = line.wishes.guards != kRecord;
  bool looks_for_contexts = line.wishes.level != "record";
  for (const std::string& file : line.inputs) {
    if (!looks_for_translated && !looks_for_counts && !looks_for_contexts) break;
    const std::string content = content_of(file);
    if (looks_for_translated && is_translated(content)) {
      looks_for_translated = false;
      said += sentence(file, "-ffar=translate-heap or translate-all", "the runtime of translated programs",
                       "give the same -ffar= when linking, too");
    }
    if (looks_for_contexts && content.find(kRecords) != content.npos) {
      looks_for_contexts = false;
      said += sentence(file, "-ffar=record", "what writes the profile", "give -ffar=record when linking, too");
    }
    if (looks_for_counts && content.find(kCounts) != content.npos) {
      looks_for_counts = false;
      said += sentence(file, "-ffar-guard=record", "what writes the profile",
                       "give -ffar=guard -ffar-guard=record when linking, too, or compile it anew without");
    }
  }
  return said;
}

// Keeps what a program writes to its standard error, until its end tells how much of it to show.
class Heard {
 public:
  Heard() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
  }
  ~Heard() {
    for (const int end : ends_) close_end(end);
  }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  [[nodiscard]] bool is_open() const { return ends_[1] >= 0; }
  [[nodiscard]] int end_to_write() const { return ends_[1]; }

  // Until nobody can write any more.
  [[nodiscard]] std::string read_all() {
    close_end(std::exchange(ends_[1], -1));
    std::string text;
    std::array<char, 4096> part{};
    for (;;) {
      const ssize_t count = read(ends_[0], part.data(), part.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  static void close_end(int end) {
    if (end >= 0) close(end);
  }
  std::array<int, 2> ends_{-1, -1};
};

// The first lines, and how many more there are.
std::string beginning_of(std::string_view text) {
  std::size_t end = 0;
  for (int line = 0; line < kLinesShown && end < text.size(); ++line) {
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  }
  const auto more = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  std::string shown(text.substr(0, end));
  if (more > 0) shown += fmt::format("({} more lines of the linker's)\n", more);
  return shown;
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
  arguments.reserve(words.size() + 2);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  std::string colour = "-fcolor-diagnostics";  // which clang cannot see behind a pipe
  if (isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr) {
    arguments.insert(arguments.end() - static_cast<std::ptrdiff_t>(line.clang.size()), colour.data());
  }
  arguments.push_back(nullptr);
  Heard heard;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (heard.is_open()) posix_spawn_file_actions_adddup2(&actions, heard.end_to_write(), STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    fmt::print(stderr, "farcc: cannot run {}: {}\n", words[0], std::strerror(error));
    return kNotRun;
  }
  const std::string said = heard.is_open() ? heard.read_all() : std::string();
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kNotRun;
  }
  const bool failed = WIFEXITED(status) && WEXITSTATUS(status) != 0;
  const std::string why = failed ? explanation(line) : std::string();
  fmt::print(stderr, "{}{}", why.empty() ? said : beginning_of(said), why);
  if (WIFSIGNALED(status)) {
    (void)std::signal(WTERMSIG(status), SIG_DFL);
    (void)std::raise(WTERMSIG(status));  // as if this were clang
    return kSignalled + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

}  // namespace farheap::compiler
