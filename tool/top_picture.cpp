// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "top_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "run_report.hpp"
#include "terminal.hpp"

namespace farheap::tool {
namespace {

using base::format_size;
using base::Heat;

constexpr std::size_t kTopRanges = 5;
constexpr std::size_t kProcessesShown = 20;
constexpr double kNanoseconds = 1e-9;

// Turns what was counted into what happened in a second.
class Rates {
 public:
  explicit Rates(double seconds) : seconds_(std::max(seconds, 1e-6)) {}
  [[nodiscard]] std::string number(std::uint64_t count) const {
    const double rate = static_cast<double>(count) / seconds_;
    return rate != 0 && rate < 10 ? fmt::format("{:.1f}", rate) : fmt::format("{:.0f}", rate);
  }
  [[nodiscard]] std::string bytes(std::uint64_t count) const {
    return size_text(static_cast<double>(count) / seconds_);
  }
  // Several threads may wait at once: it can be more than 100.
  [[nodiscard]] std::string percent(std::uint64_t ns) const {
    return fmt::format("{:.0f} %", 100 * static_cast<double>(ns) * kNanoseconds / seconds_);
  }

 private:
  double seconds_;
};

std::uint64_t grown(const RunPicture& run, std::uint64_t CounterValues::* what) {
  const std::uint64_t now = run.now.counters.*what;
  const std::uint64_t before = run.before.counters.*what;
  return now > before ? now - before : 0;
}

std::string bar(std::uint64_t part, std::uint64_t whole) {
  constexpr std::size_t kWidth = 32;
  const double share = whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  const auto full = static_cast<std::size_t>(std::lround(std::min(share, 1.0) * kWidth));
  const std::string text = std::string(full, '#') + std::string(kWidth - full, '.');
  return "[" + coloured(share > 1.02 ? Colour::kRed : Colour::kGreen, text) + "]";
}

std::vector<std::string> rates_of(const base::HeatCounts& counts, const Rates& rates) {
  return {rates.number(counts.faults()), rates.number(counts[Heat::kStore]), rates.bytes(counts[Heat::kBytesRead]),
          rates.bytes(counts[Heat::kBytesWritten]), rates.percent(counts[Heat::kStallNs])};
}

std::string process_table(const RunPicture& run, const Rates& rates) {
  auto processes = run.now.processes;
  std::stable_sort(processes.begin(), processes.end(),
                   [](auto& a, auto& b) { return a.resident_bytes > b.resident_bytes; });
  std::vector<std::vector<std::string>> rows{
      {"  PROCESS", "RESIDENT", "FAULTS/s", "STORE/s", "IN/s", "OUT/s", "STALLED", "NAME"}};
  for (const auto& process : processes) {
    if (rows.size() > kProcessesShown) break;
    base::HeatCounts before;
    for (const auto& old : run.before.processes) {
      if (old.pid == process.pid) before = old.counts;
    }
    std::vector<std::string> row{fmt::format("  {}", process.pid), format_size(process.resident_bytes)};
    for (auto& text : rates_of(process.counts.since(before), rates)) row.push_back(process.paging ? text : "-");
    row.push_back(printable(process.name));
    rows.push_back(std::move(row));
  }
  std::string text = aligned(rows);
  if (processes.size() > kProcessesShown) text += fmt::format("  and {} more\n", processes.size() - kProcessesShown);
  return text;
}

std::string range_table(const RunPicture& run, const Rates& rates) {
  std::vector<std::vector<std::string>> rows{
      {"  HOTTEST RANGES", "IN THE HEAP AT", "FAULTS/s", "STORE/s", "IN/s", "OUT/s", "STALLED", "PROCESS"}};
  for (const auto& range : hottest(run.now.ranges, kTopRanges)) {
    std::vector<std::string> row{"  " + range_text(run.now.heap_address, range), format_size(range.offset)};
    for (auto& text : rates_of(range.counts, rates)) row.push_back(std::move(text));
    row.push_back(fmt::format("{}", range.pid));
    rows.push_back(std::move(row));
  }
  return rows.size() == 1 ? std::string() : aligned(rows);
}

}  // namespace

std::string size_text(double bytes) { return format_size(static_cast<std::uint64_t>(std::min(bytes, 0x1p63))); }

std::string range_text(std::uint64_t heap_address, const RangeSample& range) {
  return fmt::format("{:#x} + {}", heap_address + range.offset, format_size(range.bytes));
}

std::vector<RangeSample> hottest(std::vector<RangeSample> ranges, std::size_t most) {
  const auto heat = [](const RangeSample& range) {
    return std::pair(range.counts[Heat::kStallNs], range.counts[Heat::kBytesRead] + range.counts[Heat::kBytesWritten]);
  };
  std::stable_sort(ranges.begin(), ranges.end(), [&](auto& a, auto& b) { return heat(a) > heat(b); });
  ranges.resize(std::min(ranges.size(), most));
  return ranges;
}

namespace {

std::string doubt_of(const Sample& now) {
  if (now.counters_fell) return kCountersFell;
  RunSummary summary;
  summary.seconds = now.seconds;
  add_counters(summary, now.counters);
  return tool::doubt_of(summary, Machine::here());
}

}  // namespace

std::string picture_text(const RunPicture& run) {
  const Rates rates(run.now.seconds - run.before.seconds);
  const auto number = [&](auto what) { return rates.number(grown(run, what)); };
  const auto bytes = [&](auto what) { return rates.bytes(grown(run, what)); };
  std::string text = fmt::format("{}  (run {}, {:.1f} s)\n", coloured(Colour::kBold, printable(run.command)), run.tool,
                                 run.now.seconds);
  if (const std::string doubt = doubt_of(run.now); !doubt.empty()) {
    return text +
           fmt::format("  its figures cannot be right ({}): a process of the run has written over them\n", doubt);
  }
  text += fmt::format("  memory  {} of {}  {}  peak {}\n", format_size(run.now.resident_bytes),
                      format_size(run.now.budget_bytes), bar(run.now.resident_bytes, run.now.budget_bytes),
                      format_size(run.now.counters.peak_bytes));
  if (run.now.counters.paging_processes == 0) {
    return text + "  plain memory so far: it has not come near its budget\n" + process_table(run, rates);
  }
  const std::string packed = run.now.counters.faults_packed == 0
                                 ? ""
                                 : fmt::format(" ({} of them compressed)", number(&CounterValues::faults_packed));
  text += fmt::format("  faults  {}/s: {} first touches, {} still in memory{}, {} from the store, {} on their way\n",
                      number(&CounterValues::faults), number(&CounterValues::faults_fresh),
                      number(&CounterValues::faults_probation), packed, number(&CounterValues::faults_store),
                      number(&CounterValues::faults_waited));
  text += fmt::format("  bytes   in {}/s ({}/s of it ahead), out {}/s\n", bytes(&CounterValues::bytes_read),
                      bytes(&CounterValues::bytes_read_ahead), bytes(&CounterValues::bytes_written));
  text += fmt::format("  stalled {} of the time, {} for want of room\n",
                      rates.percent(grown(run, &CounterValues::stall_ns)),
                      rates.percent(grown(run, &CounterValues::stall_no_room_ns)));
  return text + process_table(run, rates) + range_table(run, rates);
}

}  // namespace farheap::tool
