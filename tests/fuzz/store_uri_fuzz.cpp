// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever text is given as a store: it is refused in words, or taken apart into what can be put together again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "store/kinds.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace farheap;
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  auto uri = store::parse_uri(text, store::vocabulary());
  if (!uri) {
    if (uri.error().code != ErrorCode::kInvalidArgument || uri.error().remedy.empty()) std::abort();
    return 0;
  }
  const auto again = store::parse_uri(uri->text(), store::vocabulary());
  if (!again || again->text() != uri->text()) std::abort();
  for (const auto& parameter : uri->parameters) {
    const store::Parameters parameters(*uri, parameter.kind);
    (void)parameters.number(parameter.name, 0).has_value();
    (void)parameters.size(parameter.name, 0).has_value();
    (void)parameters.rate(parameter.name, 0).has_value();
  }
  return 0;
}
