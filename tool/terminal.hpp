// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What people see on a terminal: messages, colour (only on a terminal, never with NO_COLOR), columns.
//
// Thread-safety: the tool has one thread.
#pragma once

#include <fmt/format.h>

#include <farheap/result.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace farheap::tool {

enum class Colour { kPlain, kGreen, kYellow, kRed, kBold };

// `text` in colour if standard output (or error) is a terminal and NO_COLOR is not set.
[[nodiscard]] std::string coloured(Colour colour, std::string_view text, bool on_error = false);

// Opens those of the three standard descriptors that are closed, so that no file of ours takes their numbers and gets
// what is meant for them. They stay closed for the program.
void open_standard_descriptors();

// On standard output; finish_output() tells whether all of it was written.
void put(std::string_view text);
template <class... Values>
void print_out(fmt::format_string<Values...> format, Values&&... values) {
  put(fmt::format(format, std::forward<Values>(values)...));
}
[[nodiscard]] Status finish_output();
// On standard error. Nothing can be done if that is gone.
void put_error(std::string_view text);
// "farheap: ..." on standard error.
void say(std::string_view text);
void complain(const Error& error);
// Says what is wrong and that the settings were not understood; for the exit status 2.
int wrong_usage(const Error& error);

// Whether to do what cannot be undone: asked on a terminal; elsewhere nobody can be. "remove X" -> "remove X? [y/N]".
[[nodiscard]] bool is_wanted(const std::string& what);
[[nodiscard]] bool can_ask();

// As a shell reads it back. A word that needs no quotes stays as it is.
[[nodiscard]] std::string shell_word(const std::string& word);

// Control characters would move the cursor.
[[nodiscard]] std::string printable(std::string_view text);

inline constexpr std::size_t kTextWidth = 72;  // of texts in tables

// What is longer than `most` bytes keeps its beginning and its end, with "..." between.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t most);

// Rows of equal length as aligned columns, each line ended; the last column is not padded.
[[nodiscard]] std::string aligned(const std::vector<std::vector<std::string>>& rows);
// The same, and on a terminal no line is longer than it is wide: what is too long in one of these columns ends with
// "...", those that are named first before the others.
[[nodiscard]] std::string fitted(std::vector<std::vector<std::string>> rows, const std::vector<std::size_t>& columns);

}  // namespace farheap::tool
