// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap store kinds: the engines and decorators of this build.
#include <fmt/format.h>

#include <farheap/store.hpp>
#include <nlohmann/json.hpp>

#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {

// The global name of the same meaning is the library's.
int store_kinds(const StoreKindsArguments& arguments) {
  if (arguments.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const auto& kind : farheap::store_kinds()) {
      rows.push_back(
          {{"scheme", kind.scheme}, {"form", kind.form}, {"summary", kind.summary}, {"decorator", kind.decorator}});
    }
    print_out("{}\n", nlohmann::ordered_json{{"format", kJsonFormat}, {"kinds", std::move(rows)}}.dump(2));
    return kDone;
  }
  std::vector<std::vector<std::string>> lines;
  for (const auto& kind : farheap::store_kinds()) {
    lines.push_back({std::string(kind.form), std::string(kind.summary)});
  }
  print_out("{}", aligned(lines));
  return kDone;
}

}  // namespace farheap::tool
