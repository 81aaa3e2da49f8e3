// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "os/waiting_place.hpp"

#include <charconv>

#include "base/format_into.hpp"
#include "os/proc_text.hpp"

namespace farheap::os {

// " 0x7ffe..." at the end of the text, which it is taken from.
static std::optional<std::uintptr_t> take_last_word(std::string_view& text) {
  const std::size_t begin = text.rfind(" 0x");
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(begin + 3);
  text = text.substr(0, begin);
  std::uintptr_t word = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), word, 16);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return word;
}

// "running"; or the number of the system call (-1: none), its arguments, the stack pointer and the instruction.
std::optional<WaitingPlace> read_waiting_place(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto instruction = take_last_word(text);
  const auto stack = take_last_word(text);
  if (!instruction || !stack) return std::nullopt;
  return WaitingPlace{.instruction = *instruction, .stack = *stack};
}

std::optional<WaitingPlace> waiting_place(std::uint32_t thread) {
  char path[64], room[256];
  path[base::format_into({path, sizeof path - 1}, "/proc/self/task/{}/syscall", thread).size()] = '\0';
  return read_waiting_place(read_proc_text(path, room));
}

}  // namespace farheap::os
