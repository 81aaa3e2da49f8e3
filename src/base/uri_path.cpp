// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/uri_path.hpp"

namespace farheap::base {
namespace {

constexpr std::string_view kEscaped = "%?@#,&";
constexpr std::string_view kDigits = "0123456789ABCDEF";

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string escape_path(std::string_view path) {
  std::string text;
  for (const char c : path) {
    if (kEscaped.find(c) == kEscaped.npos) {
      text += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    text += '%';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string unescape_path(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 && digit_of(text[i + 2]) >= 0;
    path += is_escape ? static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2])) : text[i];
    if (is_escape) i += 2;
  }
  return path;
}

std::string path_uri(std::string_view engine, std::string_view path) {
  return std::string(engine) + ":" + escape_path(path);
}

}  // namespace farheap::base
