// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What people see on a terminal: messages, colour (only on a terminal, never with NO_COLOR), columns.
//
// Thread-safety: the tool has one thread.
#pragma once

#include <farheap/result.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::tool {

enum class Colour { kPlain, kGreen, kYellow, kRed, kBold };

// `text` in colour if standard output (or error) is a terminal and NO_COLOR is not set.
[[nodiscard]] std::string coloured(Colour colour, std::string_view text, bool on_error = false);

// "farheap: ..." on standard error.
void say(std::string_view text);
void complain(const Error& error);
// Says what is wrong and that the settings were not understood; for the exit status 2.
int wrong_usage(const Error& error);

// As a shell reads it back. A word that needs no quotes stays as it is.
[[nodiscard]] std::string shell_word(const std::string& word);

// Rows of equal length as aligned columns, each line ended; the last column is not padded.
[[nodiscard]] std::string aligned(const std::vector<std::vector<std::string>>& rows);

}  // namespace farheap::tool
