// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap options: every knob, its value, and where the value came from.
#include "base/options.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/without_secrets.hpp"
#include "environment.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

void print_json(const base::LoadedOptions& loaded) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto table = base::option_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].hidden) continue;
    rows.push_back({{"key", table[i].key},
                    {"value", base::without_secrets(base::option_text(loaded.options, i))},
                    {"source", to_string(loaded.sources[i])},
                    {"variable", table[i].variable()},
                    {"form", table[i].form},
                    {"help", table[i].help}});
  }
  const nlohmann::ordered_json whole = {{"format", kJsonFormat}, {"options", std::move(rows)}};
  print_out("{}\n", whole.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_table(const base::LoadedOptions& loaded) {
  std::vector<std::vector<std::string>> rows{{"KEY", "VALUE", "FROM", "FORM", "WHAT IT DOES"}};
  const auto table = base::option_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].hidden) continue;
    std::string value = base::without_secrets(base::option_text(loaded.options, i));
    rows.push_back({std::string(table[i].key), value.empty() ? "-" : std::move(value),
                    std::string(to_string(loaded.sources[i])), std::string(table[i].form), std::string(table[i].help)});
  }
  print_out("{}", aligned(rows));
  print_out("\nSet one with --set KEY=VALUE, or in the environment: FARHEAP_ and the key in upper case.\n");
}

}  // namespace

int options(const OptionsArguments& arguments) {
  const auto loaded = load_tool_options(arguments.settings);
  if (!loaded) return wrong_usage(loaded.error());
  if (arguments.json) {
    print_json(*loaded);
  } else {
    print_table(*loaded);
  }
  return kDone;
}

}  // namespace farheap::tool
