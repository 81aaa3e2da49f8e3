// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.hpp"
#include "chart_svg.hpp"
#include "report_forms.hpp"
#include "top_picture.hpp"

namespace farheap::tool {
namespace {

using base::format_size;
using base::Heat;

constexpr std::size_t kMostPieces = 400;
constexpr std::size_t kRangesShown = 12;
constexpr std::size_t kProcessesShown = 30;

// Both palettes keep their order of lightness for those who see few colours.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --page: #fcfcfb; --ink: #1c1c1a; --soft: #5c5b57; --grid: #e4e3df;
  --limit: #b3261e; --c0: #2a78d6; --c1: #eb6834; --c2: #1baf7a; --c3: #eda100; }
@media (prefers-color-scheme: dark) { :root { --page: #1a1a19; --ink: #ececea; --soft: #b0afa9; --grid: #383835;
  --limit: #ff8a80; --c0: #4a94ea; --c1: #e0672f; --c2: #22a878; --c3: #d39a12; } }
body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 940px;
  margin: 0 auto; padding: 1.2rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .2rem; }
.note { color: var(--limit); } .legend { color: var(--soft); margin: 0; font-size: .87rem; }
.legend span { margin-right: 1.2em; white-space: nowrap; }
.swatch, .ramp, .dashes { display: inline-block; height: .75em; width: .75em; margin-right: .4em; border-radius: 2px; }
.swatch.c0 { background: var(--c0); } .swatch.c1 { background: var(--c1); }
.swatch.c2 { background: var(--c2); } .swatch.c3 { background: var(--c3); }
.ramp { width: 5em; margin: 0 .3em; background: linear-gradient(to right, transparent, var(--c0));
  border: 1px solid var(--grid); }
.dashes { width: 1.4em; height: 0; border-top: 2px dashed var(--limit); border-radius: 0; vertical-align: middle; }
svg { width: 100%; height: auto; display: block; } svg .label { fill: var(--soft); font-size: 12px; }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--soft); }
svg .limit { stroke: var(--limit); stroke-width: 1.6; stroke-dasharray: 7 5; }
svg .c0 { fill: var(--c0); } svg .c1 { fill: var(--c1); } svg .c2 { fill: var(--c2); } svg .c3 { fill: var(--c3); }
svg .line { fill: none; stroke-width: 1.6; } svg .line.c0 { stroke: var(--c0); } svg .line.c1 { stroke: var(--c1); }
svg .line.c2 { stroke: var(--c2); } svg .line.c3 { stroke: var(--c3); } svg .area { fill-opacity: .75; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 600; }
)";

using Rows = std::vector<std::vector<std::string>>;

// The first row is the heading.
std::string table_html(const std::string& title, const Rows& rows) {
  if (rows.size() == 1) return {};
  std::string text = "<h2>" + escaped(title) + "</h2>\n<table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const char* const tag = i == 0 ? "th" : "td";
    text += "<tr>";
    for (const auto& field : rows[i]) text += fmt::format("<{}>{}</{}>", tag, escaped(field), tag);
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

std::vector<std::string> count_fields(const base::HeatCounts& counts) {
  return {fmt::format("{}", counts.faults()), fmt::format("{}", counts[Heat::kStore]),
          format_size(counts[Heat::kBytesRead]), format_size(counts[Heat::kBytesWritten]),
          fmt::format("{:.2f} s", static_cast<double>(counts[Heat::kStallNs]) * 1e-9)};
}

void add_row(Rows& rows, std::vector<std::string> first, const base::HeatCounts& counts) {
  for (auto& field : count_fields(counts)) first.push_back(std::move(field));
  rows.push_back(std::move(first));
}

std::string range_table(const std::vector<RangeSample>& ranges, std::uint64_t heap_address) {
  Rows rows{{"Addresses", "In the heap at", "Process", "Faults", "From the store", "In", "Out", "Stalled"}};
  for (const auto& range : hottest(ranges, kRangesShown)) {
    add_row(rows, {range_text(heap_address, range), format_size(range.offset), fmt::format("{}", range.pid)},
            range.counts);
  }
  return table_html("Hottest ranges", rows);
}

struct ProcessSum {
  std::string name;
  std::uint64_t peak_bytes = 0;
  base::HeatCounts counts;
};

std::string process_table(const Trace& trace, const std::vector<RangeSample>& ranges) {
  std::map<int, ProcessSum> sums;
  for (const auto& sample : trace.samples) {
    for (const auto& process : sample.processes) {
      auto& sum = sums[process.pid];
      sum.name = process.name;
      sum.peak_bytes = std::max(sum.peak_bytes, process.resident_bytes);
    }
  }
  for (const auto& range : ranges) sums[range.pid].counts += range.counts;
  std::vector<std::pair<int, ProcessSum>> order(sums.begin(), sums.end());
  std::stable_sort(order.begin(), order.end(),
                   [](auto& a, auto& b) { return a.second.peak_bytes > b.second.peak_bytes; });
  Rows rows{{"Process", "Number", "Largest", "Faults", "From the store", "In", "Out", "Stalled"}};
  for (const auto& [pid, sum] : order) {
    if (rows.size() > kProcessesShown) break;
    add_row(rows, {sum.name, fmt::format("{}", pid), format_size(sum.peak_bytes)}, sum.counts);
  }
  return table_html(fmt::format("Processes ({} seen)", sums.size()), rows);
}

Series percent_of(Series nanoseconds_per_second) {
  for (auto& value : nanoseconds_per_second) value *= 1e-7;
  return nanoseconds_per_second;
}

std::string charts(const Trace& trace) {
  const std::size_t pieces = std::clamp<std::size_t>(trace.samples.size(), 2, kMostPieces);
  const double seconds = duration(trace);
  const auto rate = [&](auto what) { return rate_series(trace, pieces, what); };
  Chart memory{.title = "Memory", .unit = AxisUnit::kBytes};
  memory.series = {
      {"resident, all processes", level_series(trace, pieces, [](const Sample& one) { return one.resident_bytes; })}};
  memory.line = static_cast<double>(trace.last().budget_bytes);
  memory.line_name = "budget, " + format_size(trace.last().budget_bytes);
  std::string text = chart_html(memory, seconds);
  if (trace.last().counters.paging_processes == 0) {
    return text + "<p>Nothing was paged: all of it fitted the budget.</p>\n";
  }
  Chart faults{.title = "Faults", .per_second = true, .stacked = true};
  faults.series = {{"from the store", rate(&CounterValues::faults_store)},
                   {"still in memory", rate(&CounterValues::faults_probation)},
                   {"on their way", rate(&CounterValues::faults_waited)},
                   {"first touches", rate(&CounterValues::faults_fresh)}};
  Chart bytes{.title = "Bytes to and from the store", .unit = AxisUnit::kBytes, .per_second = true};
  bytes.series = {{"in", rate(&CounterValues::bytes_read)},
                  {"out", rate(&CounterValues::bytes_written)},
                  {"in, of it ahead", rate(&CounterValues::bytes_read_ahead)}};
  Chart stalls{.title = "Stalled: time that faults waited, of all threads", .unit = AxisUnit::kPercent};
  stalls.series = {{"all", percent_of(rate(&CounterValues::stall_ns))},
                   {"of it for want of room", percent_of(rate(&CounterValues::stall_no_room_ns))}};
  for (const auto* chart : {&faults, &bytes, &stalls}) text += chart_html(*chart, seconds);
  constexpr std::size_t kRows = 42;
  const HeatMap map = heat_map(trace, kRows, std::min<std::size_t>(pieces, 120));
  return map.end_offset == 0 ? text : text + heat_map_html(map, seconds);
}

}  // namespace

std::string report_html(const Trace& trace) {
  const RunSummary summary = summary_of(trace);
  std::string command;
  for (const auto& word : trace.command) command += (command.empty() ? "" : " ") + word;
  std::string text = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n";
  text += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  text += "<title>" + escaped(command) + "</title>\n<style>" + kStyle + "</style></head><body>\n";
  text += "<h1>" + escaped(command) + "</h1>\n";
  for (const auto& line : report_lines(summary)) text += "<p>" + escaped(line) + "</p>\n";
  if (!trace.end) text += "<p class=\"note\">" + escaped(cut_off_note(trace)) + "</p>\n";
  const auto ranges = whole_ranges(trace);
  if (!summary.doubt.empty()) return text + "</body></html>\n";
  text += charts(trace) + range_table(ranges, trace.last().heap_address) + process_table(trace, ranges);
  return text + "</body></html>\n";
}

}  // namespace farheap::tool
