// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "page_data.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace farheap::tool {

namespace {

using base::Heat;
using nlohmann::ordered_json;

constexpr std::size_t kMostPieces = 400, kMostColumns = 120, kHeatRows = 42;

ordered_json rounded(const Series& series) {
  auto numbers = ordered_json::array();
  for (const double one : series) numbers.push_back(std::round(one));
  return numbers;
}

ordered_json heat_json(const Trace& trace, std::size_t columns) {
  const HeatMap map = heat_map(trace, kHeatRows, columns);
  return {{"end_offset", map.end_offset},
          {"rows", map.rows},
          {"columns", map.columns},
          {"bytes_per_second", rounded(map.bytes_per_second)}};
}

struct ProcessSum {
  std::string name;
  std::uint64_t peak_bytes = 0;
  base::HeatCounts counts;
};

// The largest of its shares.
class Shares {
 public:
  explicit Shares(const ProfileFigures& figures) {
    for (const SiteFigures& site : figures.sites) {
      seconds_ += site.waits.seconds;
      peak_ += static_cast<double>(site.peak_bytes);
      allocated_ += static_cast<double>(site.allocated_bytes);
    }
  }
  double operator()(const SiteFigures& site) const {
    const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
    return std::max({share(site.waits.seconds, seconds_), share(static_cast<double>(site.peak_bytes), peak_),
                     share(static_cast<double>(site.allocated_bytes), allocated_)});
  }

 private:
  double seconds_ = 0, peak_ = 0, allocated_ = 0;
};

// What is left keeps its order.
std::vector<SiteFigures> take_small_sites(ProfileFigures& figures, std::size_t most) {
  if (figures.sites.size() <= most) return {};
  const Shares shares(figures);
  std::vector<double> of_site;
  of_site.reserve(figures.sites.size());
  for (const SiteFigures& site : figures.sites) of_site.push_back(shares(site));
  std::vector<double> order = of_site;
  std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(most), std::greater{});
  const double least = order[most];
  std::vector<SiteFigures> large, small;
  auto equal_room =
      static_cast<std::ptrdiff_t>(most) - std::ranges::count_if(of_site, [&](double one) { return one > least; });
  for (std::size_t i = 0; i < of_site.size(); ++i) {
    const bool is_large = of_site[i] > least || (of_site[i] == least && equal_room-- > 0);
    (is_large ? large : small).push_back(std::move(figures.sites[i]));
  }
  figures.sites = std::move(large);
  return small;
}

}  // namespace

ordered_json timeline_json(const Trace& trace) {
  const std::size_t pieces = std::clamp<std::size_t>(trace.samples.size(), 2, kMostPieces);
  const auto rate = [&](auto what) { return rounded(rate_series(trace, pieces, what)); };
  ordered_json timeline = {
      {"seconds", duration(trace)},
      {"pieces", pieces},
      {"resident_bytes", rounded(level_series(trace, pieces, [](const Sample& one) { return one.resident_bytes; }))}};
  if (trace.last().counters.paging_processes == 0) return timeline;
  timeline["faults_per_second"] = {{"faults_store", rate(&CounterValues::faults_store)},
                                   {"faults_probation", rate(&CounterValues::faults_probation)},
                                   {"faults_waited", rate(&CounterValues::faults_waited)},
                                   {"faults_fresh", rate(&CounterValues::faults_fresh)}};
  timeline["bytes_per_second"] = {{"bytes_read", rate(&CounterValues::bytes_read)},
                                  {"bytes_written", rate(&CounterValues::bytes_written)},
                                  {"bytes_read_ahead", rate(&CounterValues::bytes_read_ahead)}};
  timeline["stall_ns_per_second"] = {{"stall", rate(&CounterValues::stall_ns)},
                                     {"stall_no_room", rate(&CounterValues::stall_no_room_ns)}};
  timeline["heat"] = heat_json(trace, std::min(pieces, kMostColumns));
  return timeline;
}

ordered_json processes_json(const Trace& trace) {
  std::map<int, ProcessSum> sums;
  for (const auto& sample : trace.samples) {
    for (const auto& process : sample.processes) {
      auto& sum = sums[process.pid];
      sum.name = process.name;
      sum.peak_bytes = std::max(sum.peak_bytes, process.resident_bytes);
    }
  }
  for (const auto& range : whole_ranges(trace)) sums[range.pid].counts += range.counts;
  std::vector<std::pair<int, ProcessSum>> order(sums.begin(), sums.end());
  std::ranges::stable_sort(order, std::greater{}, [](const auto& one) { return one.second.peak_bytes; });
  if (order.size() > kMostRows) order.resize(kMostRows);
  auto rows = ordered_json::array();
  for (const auto& [pid, sum] : order) {
    rows.push_back({{"pid", pid},
                    {"name", sum.name},
                    {"peak_bytes", sum.peak_bytes},
                    {"faults", sum.counts.faults()},
                    {"faults_store", sum.counts[Heat::kStore]},
                    {"bytes_read", sum.counts[Heat::kBytesRead]},
                    {"bytes_written", sum.counts[Heat::kBytesWritten]},
                    {"stall_ns", sum.counts[Heat::kStallNs]}});
  }
  return rows;
}

ordered_json leave_largest(ProfileFigures& figures, std::size_t most) {
  Waits waits;
  std::uint64_t peak = 0, allocated = 0, live = 0;
  const std::vector<SiteFigures> small = take_small_sites(figures, most);
  for (const SiteFigures& site : small) {
    waits += site.waits;
    peak += site.peak_bytes;
    allocated += site.allocated_bytes;
    live += site.live_bytes;
  }
  const std::size_t lines = figures.lines.size() - std::min(figures.lines.size(), most);  // they are sorted
  double line_seconds = 0;
  for (std::size_t i = figures.lines.size() - lines; i < figures.lines.size(); ++i) {
    line_seconds += figures.lines[i].waits.seconds;
  }
  figures.lines.resize(figures.lines.size() - lines);
  return {{"sites", small.size()},
          {"stall_seconds", waits.seconds},
          {"peak_bytes", peak},
          {"allocated_bytes", allocated},
          {"live_bytes", live},
          {"lines", lines},
          {"lines_stall_seconds", line_seconds}};
}

}  // namespace farheap::tool
