// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as JSON: refused with a place, or a value that is printed and read again as the same, plainly and indented;
// and any bytes as a path into it.
#include <cstdint>
#include <cstdlib>
#include <farheap/json.hpp>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace farheap;
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  const std::allocator<std::byte> memory;
  const auto value = json::parse(text, memory, {.depth = 32});
  if (!value) {
    if (value.error().code != ErrorCode::kInvalidArgument || !value.error().subject.starts_with("line ")) std::abort();
    return 0;
  }
  for (const unsigned indent : {0u, 3u}) {
    const auto printed = json::serialize(*value, {.indent = indent});
    if (!printed) std::abort();
    const auto again = json::parse(*printed, memory, {.depth = 32});
    if (!again || !(*again == *value)) std::abort();
  }
  (void)value->find_path(text);
  return 0;
}
