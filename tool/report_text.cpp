// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "report_forms.hpp"
#include "terminal.hpp"
#include "top_picture.hpp"

namespace farheap::tool {
namespace {

using base::format_size;
using base::Heat;

constexpr std::size_t kColumns = 60;
constexpr std::size_t kRows = 4;
constexpr std::size_t kLabelWidth = 12;
constexpr std::size_t kRangesShown = 5;

struct Plot {
  std::string title;
  Series values;
  double top;  // at the upper edge
  std::string (*label)(double);
  double line = -1;  // drawn across, below 0: none
};

std::string number_label(double number) { return fmt::format("{:.0f}", number); }

double peak(const Series& values) { return *std::max_element(values.begin(), values.end()); }

// How much of a cell is filled, in the finest steps that there are.
std::string cell(double share, bool unicode) {
  constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr const char* kAscii[] = {" ", ".", ":", "#"};
  share = std::clamp(share, 0.0, 1.0);
  const auto step = [&](int steps) {
    return share > 0 ? std::max(1, static_cast<int>(std::lround(share * steps))) : 0;
  };
  return unicode ? kBlocks[step(8)] : kAscii[step(3)];
}

std::string plot_text(const Plot& plot, double seconds, bool unicode) {
  std::string text = "\n" + plot.title + "\n";
  const double row_height = std::max(plot.top, 1e-9) / kRows;
  for (std::size_t row = kRows; row-- > 0;) {
    const double bottom = static_cast<double>(row) * row_height;
    const bool lined = plot.line >= bottom && plot.line < bottom + row_height;
    const std::string label = row + 1 == kRows ? plot.label(plot.top) : std::string();
    text += fmt::format("{:>{}} {}", label, kLabelWidth, unicode ? "│" : "|");
    for (const double value : plot.values) {
      const std::string filled = cell((value - bottom) / row_height, unicode);
      text += filled == " " && lined ? (unicode ? "┄" : "-") : filled;
    }
    text += "\n";
  }
  text += fmt::format("{:>{}} {}", plot.label(0), kLabelWidth, unicode ? "└" : "+");
  for (std::size_t i = 0; i < plot.values.size(); ++i) text += unicode ? "─" : "-";
  const std::string end = fmt::format("{:.1f} s", seconds);
  return text + fmt::format("\n{:>{}}  0{:>{}}\n", "", kLabelWidth, end, plot.values.size() - 1);
}

std::string plots(const Trace& trace, bool unicode) {
  const auto rate = [&](auto what) { return rate_series(trace, kColumns, what); };
  const auto budget = static_cast<double>(trace.last().budget_bytes);
  const Series memory = level_series(trace, kColumns, [](const Sample& one) { return one.resident_bytes; });
  const Series faults = rate(&CounterValues::faults);
  const Series in = rate(&CounterValues::bytes_read);
  const Series out = rate(&CounterValues::bytes_written);
  const double seconds = duration(trace);
  const double most_bytes = std::max(peak(in), peak(out));
  std::string text = plot_text({fmt::format("memory; the line is the budget, {}", size_text(budget)), memory,
                                std::max(peak(memory), budget * 1.05), size_text, budget},
                               seconds, unicode);
  if (trace.last().counters.paging_processes == 0) return text;
  text += plot_text({"faults a second", faults, peak(faults), number_label}, seconds, unicode);
  text += plot_text({"bytes a second, in from the store", in, most_bytes, size_text}, seconds, unicode);
  return text + plot_text({"bytes a second, out to the store", out, most_bytes, size_text}, seconds, unicode);
}

std::string range_table(const Trace& trace) {
  std::vector<std::vector<std::string>> rows{
      {"hottest ranges", "in the heap at", "faults", "from the store", "in", "out", "stalled", "process"}};
  for (const auto& range : hottest(whole_ranges(trace), kRangesShown)) {
    const auto& counts = range.counts;
    rows.push_back({range_text(trace.last().heap_address, range), format_size(range.offset),
                    fmt::format("{}", counts.faults()), fmt::format("{}", counts[Heat::kStore]),
                    format_size(counts[Heat::kBytesRead]), format_size(counts[Heat::kBytesWritten]),
                    fmt::format("{:.2f} s", static_cast<double>(counts[Heat::kStallNs]) * 1e-9),
                    fmt::format("{}", range.pid)});
  }
  return rows.size() == 1 ? std::string() : "\n" + aligned(rows);
}

}  // namespace

RunSummary summary_of(const Trace& trace) {
  RunSummary summary;
  summary.command = trace.command;
  summary.store = trace.store;
  summary.ended = trace.end.has_value();
  summary.exit_status = trace.end ? trace.end->exit_status : 0;
  summary.signal = trace.end ? trace.end->signal : 0;
  summary.seconds = trace.last().seconds;
  summary.budget_bytes = trace.last().budget_bytes;
  add_counters(summary, trace.last().counters);
  summary.doubt = doubt_of(summary, Machine{});  // it may have run elsewhere
  if (trace.last().counters_fell) summary.doubt = kCountersFell;
  return summary;
}

std::string cut_off_note(const Trace& trace) {
  if (trace.end) return {};
  return "the recording was cut off: `farheap run` was killed, could not write on, or has not ended yet";
}

std::string report_text(const Trace& trace, bool unicode) {
  std::string text;
  const RunSummary summary = summary_of(trace);
  for (const auto& line : report_lines(summary)) text += printable(line) + "\n";
  if (!trace.end) text += cut_off_note(trace) + "\n";
  if (!summary.doubt.empty()) return text;
  return text + plots(trace, unicode) + range_table(trace);
}

}  // namespace farheap::tool
