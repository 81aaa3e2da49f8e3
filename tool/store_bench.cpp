// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap store bench URI: what a store itself can do, so that users know the bound of their runs.
#include <fmt/format.h>

#include <cmath>
#include <farheap/store.hpp>
#include <nlohmann/json.hpp>

#include "environment.hpp"
#include "store/measure.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

void print_json(const Store& store, const std::vector<store::Measurement>& measurements) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& one : measurements) {
    rows.push_back(
        {{"name", one.name}, {"unit", one.unit}, {"median", one.median}, {"min", one.min}, {"max", one.max}});
  }
  const nlohmann::ordered_json whole = {
      {"format", kJsonFormat}, {"store", store.describe()}, {"results", std::move(rows)}};
  print_out("{}\n", whole.dump(2));
}

// Three digits that matter.
std::string readable(double value) {
  if (std::abs(value) >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, std::abs(value) >= 10 ? 1 : 2);
}

void print_table(const Store& store, const std::vector<store::Measurement>& measurements) {
  std::vector<std::vector<std::string>> rows{{store.describe(), "MEDIAN", "MIN", "MAX", "UNIT"}};
  for (const auto& one : measurements) {
    rows.push_back({one.name, readable(one.median), readable(one.min), readable(one.max), one.unit});
  }
  print_out("{}", aligned(rows));
}

}  // namespace

int store_bench(const StoreBenchArguments& arguments) {
  const auto loaded = load_tool_options({});
  if (!loaded) return wrong_usage(loaded.error());
  const auto opened = open_store(arguments.uri, {.encrypt_key_file = loaded->options.encrypt_key_file,
                                                 .password_file = loaded->options.store_password_file});
  if (!opened) {
    complain(opened.error());
    return opened.error().code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
  }
  const auto measurements = store::measure_store(**opened, {});
  if (!measurements) {
    complain(measurements.error());
    return kFailed;
  }
  if (arguments.json) {
    print_json(**opened, *measurements);
  } else {
    print_table(**opened, *measurements);
  }
  return kDone;
}

}  // namespace farheap::tool
