// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any text as a setting: refused, or kept so that its printed form means the same again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/options.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace farheap::base;
  const std::string setting(reinterpret_cast<const char*>(data), size);
  const auto loaded = load_options(nullptr, {&setting, 1});
  if (!loaded) {
    if (loaded.error().message().empty()) std::abort();
    return 0;
  }
  for (std::size_t i = 0; i < option_table().size(); ++i) {
    const auto& row = option_table()[i];
    if (row.hidden) continue;
    Options again;
    const std::string text = option_text(loaded->options, i);
    if (!set_option(again, row.key, text) || option_text(again, i) != text) std::abort();
  }
  return 0;
}
