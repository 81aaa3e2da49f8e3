// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap store check URI: the contract of stores, put to a user's own server. Ctrl-C ends it, and leaves nothing
// behind on the server either.
#include <fmt/format.h>

#include <farheap/store.hpp>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "environment.hpp"
#include "interruption.hpp"
#include "store/contract_run.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

std::string_view lifetime_of(const store::ContractLine& line) {
  return line.options.lifetime == Lifetime::kKeep ? "kept" : "scratch";
}

std::string_view verdict_of(const store::ContractLine& line) {
  switch (line.answer.verdict) {
    case store::Verdict::kHolds: return "holds";
    case store::Verdict::kBroken: return "BROKEN";
    case store::Verdict::kNotForThisStore: return "-";
  }
  return "";
}

void print_line(const store::ContractLine& line) {
  constexpr Colour kColours[] = {Colour::kGreen, Colour::kRed, Colour::kPlain};
  const bool is_it = line.answer.verdict == store::Verdict::kNotForThisStore;
  const auto verdict = coloured(kColours[static_cast<int>(line.answer.verdict)], fmt::format("{:6}", verdict_of(line)));
  print_out("{:7} {:>8}  {}  {:16}  {}\n", lifetime_of(line), base::format_size(line.options.block_bytes), verdict,
            line.name, is_it ? "not for this store: " + line.answer.words.front() : std::string(line.proves));
  if (line.answer.verdict != store::Verdict::kBroken) return;
  for (const auto& words : line.answer.words) print_out("{:27}{}\n", "", printable(words));
}

nlohmann::ordered_json row_of(const store::ContractLine& line) {
  constexpr std::string_view kVerdicts[] = {"holds", "broken", "not_for_this_store"};
  return {{"check", line.name},
          {"proves", line.proves},
          {"lifetime", lifetime_of(line)},
          {"block_bytes", line.options.block_bytes},
          {"verdict", kVerdicts[static_cast<int>(line.answer.verdict)]},
          {"words", line.answer.words},
          {"seconds", line.seconds}};
}

int finish(const store::ContractSummary& summary, bool json, nlohmann::ordered_json rows) {
  if (json) {
    print_out("{}\n", nlohmann::ordered_json{{"format", kJsonFormat},
                                             {"holds", summary.holding},
                                             {"broken", summary.broken},
                                             {"not_for_this_store", summary.not_for_it},
                                             {"broken_off", summary.broken_off},
                                             {"checks", std::move(rows)}}
                          .dump(2));
  } else {
    print_out("{} hold, {} broken, {} not for this store\n", summary.holding, summary.broken, summary.not_for_it);
  }
  if (summary.broken_off) say("broken off; what it had made is removed");
  return summary.broken > 0 || summary.broken_off ? kFailed : kDone;
}

}  // namespace

int store_check(const StoreCheckArguments& arguments) {
  const auto loaded = load_tool_options(arguments.settings);
  if (!loaded) return wrong_usage(loaded.error());
  auto rows = nlohmann::ordered_json::array();
  store::ContractRun run{.uri = arguments.uri,
                         .options = {.encrypt_key_file = loaded->options.encrypt_key_file,
                                     .password_file = loaded->options.store_password_file},
                         .only = arguments.only,
                         .stop = &Interruption::word()};
  run.report = [&](const store::ContractLine& line) {
    if (arguments.json) {
      rows.push_back(row_of(line));
    } else {
      print_line(line);
      (void)finish_output();  // each when it is known
    }
  };
  if (!arguments.blocks.empty()) run.block_bytes.clear();
  for (const auto& text : arguments.blocks) {
    const auto size = base::parse_size(text);
    if (!size) return wrong_usage(size.error());
    run.block_bytes.push_back(*size);
  }
  const Interruption ends_cleanly;
  const auto summary = store::run_contract(run);
  if (summary) return finish(*summary, arguments.json, std::move(rows));
  complain(summary.error());
  return summary.error().code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
}

}  // namespace farheap::tool
