// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap store bench URI: what a store itself can do, so that users know the bound of their runs; and YCSB.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <farheap/store.hpp>
#include <nlohmann/json.hpp>

#include "bars_svg.hpp"
#include "base/clock.hpp"
#include "environment.hpp"
#include "os/named_file.hpp"
#include "output_file.hpp"
#include "store/measure.hpp"
#include "store/ycsb.hpp"
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

constexpr char kCannotDraw[] = "cannot write the picture";

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

// Of each workload over some rounds, as other measurements: the median of the rounds' medians.
constexpr int kRounds = 3;
constexpr double kMostSeconds = 6;  // no further round is begun then

class YcsbRounds {
 public:
  void add(const std::vector<store::YcsbWorkload>& workloads) {
    for (const auto& workload : workloads) {
      const std::string name = "YCSB " + workload.name;
      for (const auto& one : workload.latencies) note(name + ", " + one.operation, "us", one.median);
      note(name + ", all", "us", workload.median_us);
      note(name, "op/s", workload.operations_per_second);
    }
  }
  [[nodiscard]] std::vector<store::Measurement> measurements() const {
    std::vector<store::Measurement> all;
    for (auto [name, unit, values] : rows_) {
      std::ranges::sort(values);
      all.push_back({name, unit, values[values.size() / 2], values.front(), values.back()});
    }
    return all;
  }

 private:
  struct Row {
    std::string name, unit;
    std::vector<double> values;
  };
  void note(std::string name, std::string unit, double value) {
    const auto row = std::ranges::find_if(rows_, [&](const Row& one) { return one.name == name && one.unit == unit; });
    if (row != rows_.end()) return row->values.push_back(value);
    rows_.push_back({std::move(name), std::move(unit), {value}});
  }
  std::vector<Row> rows_;
};

// In a store of its own: its blocks are as large as a record.
Result<std::vector<store::Measurement>> measure_ycsb(const std::string& uri, StoreOptions options) {
  options.block_bytes = store::kYcsbBlockBytes;
  const auto opened = open_store(uri, options);
  if (!opened) return fail(opened.error());
  YcsbRounds rounds;
  const auto start = base::Clock::now();
  for (int round = 0; round < kRounds; ++round) {
    const std::chrono::duration<double> took = base::Clock::now() - start;
    if (round != 0 && took.count() > kMostSeconds) break;
    const auto done = store::run_ycsb(**opened, {.seed = static_cast<std::uint64_t>(round) + 1});
    if (!done) return fail(done.error());
    rounds.add(*done);
  }
  return rounds.measurements();
}

// Whether the picture can be written; a file that is there stays as it is.
Status check_plot(const std::string& file) {
  if (file.empty()) return {};
  const auto name = os::follow_links(file, kCannotDraw);
  if (!name) return fail(name.error());
  if (access(name->c_str(), F_OK) == 0) {
    if (access(name->c_str(), W_OK) == 0) return {};
    return fail(errno_error(errno, kCannotDraw, file, "name a file that can be"));
  }
  const auto made = os::open_own_file(*name, 0600, kCannotDraw);
  if (!made) return fail(made.error());
  close(made->file);
  (void)unlink(name->c_str());
  return {};
}

Status plot(const std::string& file, const std::string& store, const std::vector<store::Measurement>& ycsb) {
  BarPanel latency{.title = "latency, us (median of each round; bars: least and greatest)"};
  BarPanel throughput{.title = "throughput, operations/s"};
  for (const auto& one : ycsb) {
    if (one.name.ends_with(", all")) continue;  // a mixture of what is shown
    auto& panel = one.unit == "us" ? latency : throughput;
    panel.bars.push_back({one.name.substr(5), one.median, one.min, one.max});
  }
  return write_output(file, bars_svg("YCSB on " + store, {latency, throughput}), kCannotDraw);
}

}  // namespace

int store_bench(const StoreBenchArguments& arguments) {
  const auto loaded = load_tool_options({});
  if (!loaded) return wrong_usage(loaded.error());
  const StoreOptions options{.encrypt_key_file = loaded->options.encrypt_key_file,
                             .password_file = loaded->options.store_password_file};
  if (const Status writable = check_plot(arguments.plot); !writable) {  // before all the measuring
    complain(writable.error());
    return kFailed;
  }
  const auto opened = open_store(arguments.uri, options);
  if (!opened) {
    complain(opened.error());
    return opened.error().code == ErrorCode::kInvalidArgument ? kUsage : kFailed;
  }
  auto measurements = store::measure_store(**opened, {});
  auto ycsb = measurements ? measure_ycsb(arguments.uri, options) : measurements;
  Status drawn = ycsb ? Status{} : fail(ycsb.error());
  if (drawn && !arguments.plot.empty()) drawn = plot(arguments.plot, (*opened)->describe(), *ycsb);
  if (!drawn) {
    complain(drawn.error());
    return kFailed;
  }
  measurements->insert(measurements->end(), ycsb->begin(), ycsb->end());
  if (arguments.json) {
    print_json(**opened, *measurements);
  } else {
    print_table(**opened, *measurements);
  }
  return kDone;
}

}  // namespace farheap::tool
