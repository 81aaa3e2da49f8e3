// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "terminal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/environment.hpp"
#include "base/full_disk.hpp"
#include "verbs.hpp"

namespace farheap::tool {

std::string coloured(Colour colour, std::string_view text, bool on_error) {
  const char* const refused = base::environment("NO_COLOR");
  const bool wanted = (refused == nullptr || *refused == '\0') && isatty(on_error ? STDERR_FILENO : STDOUT_FILENO);
  if (!wanted || colour == Colour::kPlain) return std::string(text);
  constexpr const char* kCodes[] = {"0", "32", "33", "31", "1"};
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<int>(colour)], text);
}

void open_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) < 0) (void)open("/dev/null", O_RDWR | O_CLOEXEC);  // takes the lowest number
  }
}

void put(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stdout); }

Status finish_output() {
  if (std::fflush(stdout) != 0) return fail(errno_error(errno, "cannot write", "standard output"));
  if (std::ferror(stdout) == 0) return {};
  return fail(ErrorCode::kIo, "cannot write", "standard output", "a part of it was refused", base::make_room());
}

void put_error(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

void say(std::string_view text) { put_error(fmt::format("farheap: {}\n", text)); }

void complain(const Error& error) { say(error.message()); }

int wrong_usage(const Error& error) {
  complain(error);
  return kUsage;
}

bool can_ask() { return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0; }

bool is_wanted(const std::string& what) {
  if (!can_ask()) return true;
  put_error(fmt::format("{}? [y/N] ", what));
  const int answer = std::getchar();
  if (answer == 'y' || answer == 'Y') return true;
  say("nothing is changed");
  return false;
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kHarmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kHarmless) == std::string::npos) return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(result.begin(), result.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return result;
}

namespace {

// Of UTF-8, a byte in the middle of a character.
bool is_inner(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string shortened(const std::string& text, std::size_t most) {
  constexpr std::string_view kMore = "...";
  if (text.size() <= most) return text;
  std::size_t end = (most - kMore.size()) * 2 / 3;
  std::size_t rest = text.size() - (most - kMore.size() - end);
  while (end > 0 && is_inner(text[end])) --end;
  while (rest < text.size() && is_inner(text[rest])) ++rest;
  return text.substr(0, end) + std::string(kMore) + text.substr(rest);
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}", row[i], widths[i] + 2);
    }
    text += '\n';
  }
  return text;
}

namespace {

// 0: standard output is no terminal.
std::size_t width_of_terminal() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Not in the middle of a character of UTF-8.
void cut(std::string& text, std::size_t most) {
  constexpr std::string_view kMore = "...";
  if (text.size() <= most) return;
  std::size_t end = most - kMore.size();
  while (end > 0 && is_inner(text[end])) --end;
  text.resize(end);
  text += kMore;
}

}  // namespace

std::string fitted(std::vector<std::vector<std::string>> rows, const std::vector<std::size_t>& columns) {
  constexpr std::size_t kLeast = 12;
  const std::size_t width = width_of_terminal();
  if (width == 0) return aligned(rows);
  const auto width_of = [&](std::size_t column) {
    std::size_t most = 0;
    for (const auto& row : rows) most = std::max(most, column < row.size() ? row[column].size() : 0);
    return most;
  };
  std::size_t all = 0;
  for (std::size_t i = 0; i < rows.front().size(); ++i) all += width_of(i) + (i == 0 ? 0 : 2);
  for (const std::size_t column : columns) {
    const std::size_t mine = width_of(column);
    if (all <= width || mine <= kLeast) continue;
    const std::size_t most = std::max(kLeast, mine - std::min(mine, all - width));
    for (auto& row : rows) cut(row[column], most);
    all -= mine - most;
  }
  return aligned(rows);
}

}  // namespace farheap::tool
