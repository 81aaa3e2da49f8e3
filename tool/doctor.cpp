// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap doctor: what this machine allows, what is missing, and the exact command that mends it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor_checks.hpp"
#include "environment.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

std::string_view name_of(CheckState state) {
  switch (state) {
    case CheckState::kOk: return "ok";
    case CheckState::kWarn: return "warn";
    case CheckState::kMissing: return "missing";
  }
  return {};
}

Colour colour_of(CheckState state) {
  if (state == CheckState::kMissing) return Colour::kRed;
  return state == CheckState::kWarn ? Colour::kYellow : Colour::kGreen;
}

void print_json(const std::vector<Check>& checks, bool works) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& check : checks) {
    rows.push_back({{"name", check.name},
                    {"state", name_of(check.state)},
                    {"found", check.found},
                    {"why", check.why},
                    {"mend", check.mend}});
  }
  const nlohmann::ordered_json whole = {{"format", kJsonFormat}, {"run_works", works}, {"checks", std::move(rows)}};
  print_out("{}\n", whole.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_text(const std::vector<Check>& checks, bool works) {
  for (const auto& check : checks) {
    const std::string state = fmt::format("{:<8}", name_of(check.state));
    print_out("{}{:<16}{}\n", coloured(colour_of(check.state), state), check.name, check.found);
    if (check.state == CheckState::kOk) continue;
    print_out("{:24}why: {}\n", "", check.why);
    for (const auto& command : check.mend) print_out("{:24}{}\n", "", command);
  }
  print_out("\n{}\n", works ? "Programs can run here: farheap run --memory 256M -- PROGRAM ARGS"
                            : "Programs cannot run on Farheap here until what is missing is mended.");
}

}  // namespace

int doctor(const DoctorArguments& arguments) {
  const auto loaded = load_tool_options(arguments.settings);
  if (!loaded) return wrong_usage(loaded.error());
  const auto checks = check_machine(loaded->options);
  const bool works =
      std::none_of(checks.begin(), checks.end(), [](const Check& one) { return one.state == CheckState::kMissing; });
  if (arguments.json) {
    print_json(checks, works);
  } else {
    print_text(checks, works);
  }
  return works ? kDone : kFailed;
}

}  // namespace farheap::tool
