// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "api/type_text.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

namespace farheap::api {
namespace {

std::string joined(std::string_view name, const std::vector<std::string>& arguments) {
  std::string text(name);
  text += '<';
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i != 0) text += ", ";
    text += arguments[i];
  }
  return text + '>';
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

// "const char*" as demangled names have it: "char const*".
std::string const_behind(std::string_view text) {
  constexpr std::string_view kConst = "const ";
  if (!text.starts_with(kConst)) return std::string(text);
  text.remove_prefix(kConst.size());
  std::size_t depth = 0, end = 0;
  for (; end < text.size(); ++end) {
    depth += text[end] == '<';
    depth -= text[end] == '>';
    if (depth == 0 && (text[end] == '*' || text[end] == '&' || text[end] == ' ')) break;
  }
  return std::string(text.substr(0, end)) + " const" + std::string(text.substr(end));
}

// The template arguments of one name, by what they are for.
struct Container {
  std::string_view name;
  std::size_t parts;  // that it always has: key and value
  bool is_ordered;    // then a comparison, otherwise a hash and an equality
  bool is_keyed = true;
};
constexpr Container kContainers[] = {
    {"vector", 1, false, false},
    {"deque", 1, false, false},
    {"list", 1, false, false},
    {"forward_list", 1, false, false},
    {"set", 1, true},
    {"multiset", 1, true},
    {"map", 2, true},
    {"multimap", 2, true},
    {"unordered_set", 1, false},
    {"unordered_multiset", 1, false},
    {"unordered_map", 2, false},
    {"unordered_multimap", 2, false},
};

// A container of std:: whose other arguments are those of std:: or of farheap:: by default.
std::optional<std::string> short_container(std::string_view name, const std::vector<std::string>& arguments) {
  const auto known = std::ranges::find(kContainers, name, &Container::name);
  if (known == std::end(kContainers) || arguments.size() < known->parts) return std::nullopt;
  const std::vector<std::string> parts(arguments.begin(),
                                       arguments.begin() + static_cast<std::ptrdiff_t>(known->parts));
  const std::string& key = parts[0];
  const std::string element = known->parts == 1 ? key : "std::pair<" + key + " const, " + parts[1] + ">";
  const auto is_default = [&](std::string_view of, const std::string& allocator) {
    std::vector<std::string> rest;
    const bool own = of == "farheap::";
    if (known->is_ordered) rest = {own ? "std::less<void>" : "std::less<" + key + ">"};
    if (known->is_keyed && !known->is_ordered) {
      rest = {std::string(of) + "hash<" + key + ">", own ? "std::equal_to<void>" : "std::equal_to<" + key + ">"};
    }
    rest.push_back(allocator);
    // A compiler prints none that are std::'s own.
    const std::size_t given = arguments.size() - known->parts;
    return given <= rest.size() && (given == rest.size() || !own) &&
           std::equal(arguments.begin() + static_cast<std::ptrdiff_t>(known->parts), arguments.end(), rest.begin());
  };
  if (is_default("std::", "std::allocator<" + element + ">")) return joined("std::" + std::string(name), parts);
  if (is_default("farheap::", "std::scoped_allocator_adaptor<farheap::allocator<" + element + ">>")) {
    return joined("farheap::" + std::string(name), parts);
  }
  return std::nullopt;
}

std::string short_template(std::string name, std::vector<std::string> arguments) {
  if (name.starts_with("std::")) {
    const std::string_view bare = std::string_view(name).substr(5);
    if (auto container = short_container(bare, arguments)) return *container;
    if (bare == "basic_string" || bare == "basic_string_view") {
      if (arguments.size() > 1 && arguments[1] != "std::char_traits<" + arguments[0] + ">")
        return joined(name, arguments);
      const bool is_char = arguments[0] == "char";
      const bool has_usual = arguments.size() < 3 || arguments[2] == "std::allocator<" + arguments[0] + ">";
      if (is_char && has_usual) return bare == "basic_string" ? "std::string" : "std::string_view";
      if (is_char && arguments[2] == "farheap::allocator<char>") return "farheap::string";
      if (has_usual) arguments.resize(1);
    }
    if (bare == "unique_ptr" && arguments.size() == 2 && arguments[1] == "std::default_delete<" + arguments[0] + ">") {
      arguments.pop_back();
    }
  }
  if (name == "farheap::json::basic_value" && arguments.size() == 1) {
    if (arguments[0] == "farheap::allocator<std::byte>") return "farheap::json::value";
    if (arguments[0] == "farheap::offset_allocator<std::byte>") return "farheap::json::offset_value";
  }
  if (name.starts_with("boost::container::") && arguments.size() > 1 && arguments.back() == "void")
    arguments.pop_back();
  return joined(name, arguments);
}

// Text of a type with its template arguments; nothing where its brackets do not match.
class Shortener {
 public:
  explicit Shortener(std::string_view text) : left_(text) {}
  [[nodiscard]] std::optional<std::string> all() {
    std::string text = part();
    if (!left_.empty() || broken_) return std::nullopt;
    return text;
  }

 private:
  // Until a ',' or a '>' that is not its own.
  [[nodiscard]] std::string part() {
    std::string text;
    while (!left_.empty() && !broken_) {
      const std::size_t at = left_.find_first_of("<,>(");
      text += left_.substr(0, at);
      left_.remove_prefix(std::min(at, left_.size()));
      if (left_.empty() || left_[0] == ',' || left_[0] == '>') break;
      if (left_[0] == '(') {
        text += parenthesis();
        continue;
      }
      const std::size_t begin = text.find_last_of(" (*&") + 1;  // npos + 1 is 0
      std::string name = text.substr(begin);
      text.resize(begin);
      text += short_template(std::move(name), arguments());
    }
    return const_behind(trimmed(text));
  }
  [[nodiscard]] std::vector<std::string> arguments() {
    std::vector<std::string> found;
    do {
      left_.remove_prefix(1);  // '<' or ','
      found.push_back(part());
    } while (left_.starts_with(','));
    broken_ = broken_ || !left_.starts_with('>');
    if (!broken_) left_.remove_prefix(1);
    return found;
  }
  // Of a function's parameters, or "(anonymous namespace)".
  [[nodiscard]] std::string parenthesis() {
    std::string text = "(";
    left_.remove_prefix(1);
    for (bool first = true; !left_.starts_with(')') && !broken_; first = false) {
      if (!first) text += ", ";
      if (left_.starts_with(',')) left_.remove_prefix(1);
      const std::size_t before = left_.size();
      std::string one = parameter();
      text += one;
      if (left_.size() == before || left_.empty()) broken_ = true;
    }
    if (!broken_) left_.remove_prefix(1);
    return text + ")";
  }
  [[nodiscard]] std::string parameter() {
    // A ')' ends it, too: cut there, and go on behind.
    std::size_t depth = 0, end = 0;
    for (; end < left_.size(); ++end) {
      const char c = left_[end];
      if (depth == 0 && (c == ')' || c == ',')) break;
      depth += c == '<' || c == '(';
      depth -= depth != 0 && (c == '>' || c == ')');
    }
    const std::string_view inner = left_.substr(0, end);
    left_.remove_prefix(end);
    auto text = Shortener(trimmed(inner)).all();
    broken_ = broken_ || !text;
    return text.value_or("");
  }

  std::string_view left_;
  bool broken_ = false;
};

// What compilers and demanglers write each in their own way.
std::string in_one_way(std::string text) {
  replace_all(text, "> >", ">>");
  replace_all(text, "> >", ">>");  // of "> > >" every second one is left
  replace_all(text, "std::__cxx11::", "std::");
  replace_all(text, "{anonymous}", "(anonymous namespace)");
  replace_all(text, "long unsigned int", "unsigned long");
  replace_all(text, "short unsigned int", "unsigned short");
  replace_all(text, "long long int", "long long");
  replace_all(text, "long int", "long");
  replace_all(text, "short int", "short");
  return text;
}

// 3ul as 3: a compiler prints no suffixes.
std::string without_suffixes(const std::string& text) {
  std::string plain;
  bool in_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    const bool starts = digit && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '<' || text[i - 1] == '-');
    in_number = starts || (in_number && digit);
    plain += text[i];
    if (in_number) {
      while (i + 1 < text.size() && (text[i + 1] == 'u' || text[i + 1] == 'l')) ++i;
    }
  }
  return plain;
}

bool is_printed(std::string_view kept) { return kept.starts_with('='); }

}  // namespace

std::string readable_type(std::string_view kept) {
  std::string text(kept);
  if (is_printed(kept)) {
    text.erase(0, 1);
  } else {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status),
                                                           &std::free);
    if (status == 0) text = name.get();
  }
  return text;
}

std::string short_type(std::string_view kept) {
  const std::string text = in_one_way(readable_type(kept));
  return Shortener(text).all().value_or(text);
}

bool is_same_type(std::string_view a, std::string_view b) {
  if (a == b) return true;
  if (is_printed(a) == is_printed(b)) return false;
  return without_suffixes(short_type(a)) == without_suffixes(short_type(b));
}

}  // namespace farheap::api
