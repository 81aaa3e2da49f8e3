// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "command_line.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/units.hpp"

namespace farheap::compiler {
namespace {

constexpr int kDeepestResponse = 32;  // files that name each other would never end

constexpr std::array<std::string_view, 7> kLevels = {"none",   "count",          "hint",         "guard",
                                                     "record", "translate-heap", "translate-all"};
constexpr const char kChoice[] = "choose none, count, hint, guard, record, translate-heap or translate-all";

// Options of clang whose value is the next word, which is then no input.
constexpr std::array<std::string_view, 40> kWithValue = {"-o",
                                                         "-x",
                                                         "-I",
                                                         "-D",
                                                         "-U",
                                                         "-L",
                                                         "-l",
                                                         "-F",
                                                         "-T",
                                                         "-u",
                                                         "-z",
                                                         "-e",
                                                         "-B",
                                                         "-MF",
                                                         "-MT",
                                                         "-MQ",
                                                         "-MJ",
                                                         "-include",
                                                         "-imacros",
                                                         "-isystem",
                                                         "-iquote",
                                                         "-idirafter",
                                                         "-isysroot",
                                                         "-iprefix",
                                                         "-iwithprefix",
                                                         "-iwithprefixbefore",
                                                         "-include-pch",
                                                         "-Xclang",
                                                         "-Xlinker",
                                                         "-Xassembler",
                                                         "-Xpreprocessor",
                                                         "-mllvm",
                                                         "-target",
                                                         "-arch",
                                                         "-A",
                                                         "--param",
                                                         "-rpath",
                                                         "--sysroot",
                                                         "-dumpdir",
                                                         "-specs"};

// With these, clang stops before it links, or does something else altogether.
constexpr std::array<std::string_view, 20> kWithoutLinking = {
    "-c",           "-S",        "-E",         "-M",           "-MM",          "-fsyntax-only", "-###",
    "--precompile", "--analyze", "--version",  "-r",           "-emit-ast",    "-extract-api",  "-verify-pch",
    "--preprocess", "--compile", "--assemble", "-dumpversion", "-dumpmachine", "-fdriver-only"};

// A header is compiled to a precompiled one: clang links nothing of it.
constexpr std::array<std::string_view, 5> kHeaders = {".h", ".hh", ".hpp", ".hxx", ".H"};

template <std::size_t size>
bool is_one_of(const std::array<std::string_view, size>& all, std::string_view word) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

std::optional<std::string_view> value_of(std::string_view word, std::string_view option) {
  if (!word.starts_with(option)) return std::nullopt;
  return word.substr(option.size());
}

auto wrong(std::string option, std::string why, std::string remedy) {
  return fail(ErrorCode::kInvalidArgument, "farcc: wrong option", std::move(option), std::move(why), std::move(remedy));
}

Status take_level(Wishes& wishes, std::string_view option, std::string_view level) {
  const std::string where = std::string(option) + std::string(level);
  if (!is_one_of(kLevels, level)) return wrong(where, "there is no such level", kChoice);
  wishes.level = level;
  return {};
}

void add_patterns(std::vector<std::string>& patterns, std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma != 0) patterns.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

// Why it is none; empty if it is one. The passes would name an option that nobody wrote, or take a word for itself that
// was meant as a list.
std::string wrong_pattern(std::string_view pattern) {
  for (const auto& [open, close] : {std::pair{'[', ']'}, std::pair{'{', '}'}}) {
    const std::size_t at = pattern.find(open);
    if (at == pattern.npos || (at > 0 && pattern[at - 1] == '\\')) continue;
    if (pattern.find(close, at) == pattern.npos) {
      return "the pattern '" + std::string(pattern) + "' has a '" + open + "' without its '" + close + "'";
    }
  }
  return {};
}

Status take_patterns(std::vector<std::string>& patterns, const std::string& word, std::string_view list) {
  add_patterns(patterns, list);
  for (const std::string& pattern : patterns) {
    std::string why = wrong_pattern(pattern);
    if (!why.empty()) return wrong(word, std::move(why), "close it, or put a backslash before it");
  }
  return {};
}

Status take_own(Wishes& wishes, const std::string& word) {
  if (const auto level = value_of(word, "-ffar=")) return take_level(wishes, "-ffar=", *level);
  if (word == "-ffar-report") {
    wishes.report = "-";
  } else if (const auto file = value_of(word, "-ffar-report=")) {
    if (file->empty()) return wrong(word, "the name of a file is missing", "name one, or write -ffar-report");
    wishes.report = *file;
  } else if (const auto only = value_of(word, "-ffar-only=")) {
    return take_patterns(wishes.only, word, *only);
  } else if (const auto leave = value_of(word, "-ffar-leave=")) {
    return take_patterns(wishes.leave, word, *leave);
  } else if (const auto borrow = value_of(word, "-ffar-borrow=")) {
    return take_patterns(wishes.borrow, word, *borrow);
  } else if (const auto size = value_of(word, "-ffar-threshold=")) {
    auto bytes = base::parse_size(*size);
    if (!bytes) return wrong(word, bytes.error().why, "write it as 512K, 4M or 1048576");
    wishes.threshold = *bytes;
  } else if (word == "-ffar-count=static" || word == "-ffar-count=executed") {
    wishes.executed = word == "-ffar-count=executed";
  } else if (word == "-ffar-count" || value_of(word, "-ffar-count=")) {
    return wrong(word, word == "-ffar-count" ? "what is to be counted is missing" : "that cannot be counted",
                 "choose -ffar-count=static (if nothing is said) or -ffar-count=executed");
  } else if (const auto guards = value_of(word, "-ffar-guard=")) {
    if (guards->empty())
      return wrong(word, "the name of a profile is missing", "name one, or write -ffar-guard=record");
    wishes.guards = *guards;
  } else if (word == "-ffar-guard") {
    return wrong(word, "what the guards are to do is missing",
                 "write -ffar=guard for all guards; with it -ffar-guard=record to make a profile, or -ffar-guard=FILE "
                 "for guards by one");
  } else if (word == "-ffar-globals") {
    wishes.globals = true;
  } else if (word == "-ffar-stack") {
    wishes.stack = true;
  } else if (word == "-ffar-print") {
    wishes.print = true;
  } else if (word == "-ffar") {
    return wrong(word, "the level is missing",
                 "write -ffar=hint, or none, count, guard, record, translate-heap or translate-all");
  } else if (word == "-ffar-only" || word == "-ffar-leave" || word == "-ffar-borrow") {
    return wrong(word, "the list of functions is missing", "write it as " + word + "=NAME,... (or with * in names)");
  } else if (word == "-ffar-threshold") {
    return wrong(word, "the size is missing", "write it as -ffar-threshold=4M");
  } else {
    return wrong(word, "farcc has no such option", "`farcc --help` lists them");
  }
  return {};
}

bool is_own(std::string_view word) {
  return word.starts_with("-ffar=") || word.starts_with("-ffar-") || word == "-ffar";
}

std::optional<std::string> text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// All words, with response files and what they name opened up.
void open_up(const std::vector<std::string>& words, std::vector<std::string>& all, int depth) {
  for (const std::string& word : words) {
    if (word.size() > 1 && word[0] == '@' && depth < kDeepestResponse) {
      if (const auto text = text_of(word.substr(1))) {
        open_up(split_response(*text), all, depth + 1);
        continue;
      }
    }
    all.push_back(word);
  }
}

// The words that clang gets, or farcc takes. A response file stays one word if nothing in it is for farcc.
std::vector<std::string> words_to_use(const std::vector<std::string>& words) {
  std::vector<std::string> result;
  for (const std::string& word : words) {
    std::vector<std::string> inside;
    open_up({word}, inside, 0);
    if (std::any_of(inside.begin(), inside.end(), is_own)) {
      result.insert(result.end(), inside.begin(), inside.end());
    } else {
      result.push_back(word);
    }
  }
  return result;
}

// `language` is the last -x, which counts more than the file's ending; empty if there is none.
bool is_header(std::string_view file, std::string_view language) {
  if (!language.empty() && language != "none") return language.ends_with("-header");
  return is_one_of(kHeaders, std::filesystem::path(file).extension().string());
}

// What clang is about to do with `words`, as far as it matters here.
void look_at(const std::vector<std::string>& words, CommandLine& line) {
  bool stops = false, lto = false, lld = false, has_more_than_headers = false;
  std::string language;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "-x" && i + 1 < words.size()) {
      language = words[++i];
    } else if (is_one_of(kWithValue, word)) {
      ++i;
    } else if (word.empty() || word[0] != '-' || word == "-") {
      line.inputs.push_back(word);
      has_more_than_headers = has_more_than_headers || !is_header(word, language);
    } else if (const auto joined = value_of(word, "-x"); joined) {
      language = *joined;
    } else if (is_one_of(kWithoutLinking, word) || word.starts_with("-print-") || word.starts_with("--print-") ||
               word.starts_with("-fmodule-header")) {
      stops = true;
    } else if (word == "-flto" || word.starts_with("-flto=")) {
      lto = true;
    } else if (word == "-static" || word == "--static" || word == "-static-pie") {
      line.is_static = true;
    } else if (word.starts_with("-fsanitize=")) {
      line.sanitizes = true;
    } else if (word == "-fno-lto") {
      lto = false;
    } else if (const auto linker = value_of(word, "-fuse-ld=")) {
      lld = linker->find("lld") != std::string_view::npos;
    }
  }
  line.links = has_more_than_headers && !stops;
  line.lto_by_lld = line.links && lto && lld;
}

// What was asked for and cannot come true, but harms nobody.
void warn_of_vain(const std::vector<std::string>& own, CommandLine& line) {
  for (const std::string& word : own) {
    for (const char* const option : {"-ffar-only=", "-ffar-leave=", "-ffar-borrow="}) {
      const auto list = value_of(word, option);
      if (!list || list->find_first_not_of(',') != list->npos) continue;
      line.warnings.push_back(word + ": the list is empty, and does nothing; name functions, or leave the option out");
    }
  }
  if (!line.wishes.borrow.empty() && !line.wishes.translates()) {
    line.warnings.push_back("-ffar-borrow: only translated code lends, and the level is " + line.wishes.level +
                            "; add -ffar=translate-heap, or leave the option out");
  }
}

Status take_environment(Wishes& wishes) {
  if (const char* level = std::getenv("FARCC_LEVEL"); level != nullptr && *level != '\0') {
    if (auto taken = take_level(wishes, "FARCC_LEVEL=", level); !taken) return taken;
  }
  if (const char* report = std::getenv("FARCC_REPORT"); report != nullptr) wishes.report = report;
  return {};
}

}  // namespace

bool Wishes::translates() const { return level == "translate-heap" || level == "translate-all"; }

bool Wishes::has_runtime() const { return translates() || level == "record"; }

bool Wishes::is_plain_hint() const {
  return level == "hint" && report.empty() && only.empty() && leave.empty() && borrow.empty() && threshold == 0;
}

Result<CommandLine> read_command_line(const std::vector<std::string>& words) {
  CommandLine line;
  if (!words.empty() && words[0].starts_with("-cc1")) {
    line.is_internal = true;
    line.clang = words;
    return line;
  }
  if (auto taken = take_environment(line.wishes); !taken) return fail(taken.error());
  bool only_inputs = false;
  std::vector<std::string> own;
  for (const std::string& word : words_to_use(words)) {
    only_inputs = only_inputs || word == "--";
    if (only_inputs || !is_own(word)) {
      line.wishes.help = line.wishes.help || (!only_inputs && word == "--help");
      line.clang.push_back(word);
    } else if (auto taken = take_own(line.wishes, word); !taken) {
      return fail(taken.error());
    } else {
      own.push_back(word);
    }
  }
  if (line.wishes.executed && line.wishes.level != "count") {
    return wrong("-ffar-count=executed", "only level count counts", "add -ffar=count");
  }
  if (!line.wishes.guards.empty() && line.wishes.level != "guard") {
    return wrong("-ffar-guard=" + line.wishes.guards, "only level guard has guards", "add -ffar=guard");
  }
  if ((line.wishes.stack || line.wishes.globals) && !line.wishes.translates()) {
    return wrong(line.wishes.stack ? "-ffar-stack" : "-ffar-globals", "without a translated heap nothing can be in it",
                 "add -ffar=translate-heap");
  }
  warn_of_vain(own, line);
  std::vector<std::string> all;
  open_up(line.clang, all, 0);
  look_at(all, line);
  return line;
}

std::vector<std::string> split_response(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
      inside = true;
    } else if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

std::string quoted(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace farheap::compiler
