// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any text as mountinfo and cgroup, the two apart at the first NUL: an answer without harm.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "os/memory_group.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto cut = text.find('\0');
  const auto rest = cut == std::string_view::npos ? std::string_view() : text.substr(cut + 1);
  const auto place = farheap::os::find_memory_group(text.substr(0, cut), rest);
  if (place && place->version != 1 && place->version != 2) std::abort();
  (void)farheap::os::find_counter(text, rest);
  return 0;
}
