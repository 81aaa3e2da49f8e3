// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes as a program: an answer, and nothing read behind their end.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tool/program_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto elf = farheap::tool::read_elf(bytes);
  if (elf && elf->interpreter.size() > size) std::abort();
  if (farheap::tool::script_interpreter(bytes).size() > size) std::abort();
  return 0;
}
