// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <nlohmann/json.hpp>

#include "profile_forms.hpp"
#include "report_forms.hpp"
#include "verbs.hpp"

namespace farheap::tool {

using nlohmann::ordered_json;

std::string json_text(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json trace_json(const Trace& trace) {
  auto report = ordered_json::parse(report_json(summary_of(trace)));
  report["ended"] = trace.end.has_value();
  report["samples"] = trace.samples.size();
  auto ranges = ordered_json::array();
  for (const auto& range : whole_ranges(trace)) ranges.push_back(range_json(range));
  report["heap_address"] = trace.last().heap_address;
  report["ranges"] = std::move(ranges);
  return report;
}

ordered_json profile_report_json(const Trace* trace, const ProfileFigures& figures, const MemoryAdvice& advice) {
  auto report = trace != nullptr ? trace_json(*trace) : ordered_json{{"format", kJsonFormat}};
  report.update(profile_json(figures));
  report["memory"] = advice_json(advice);
  return report;
}

ordered_json compared_json(const Comparison& comparison) {
  auto figures = ordered_json::array();
  for (const ComparedFigure& one : comparison.figures) {
    figures.push_back({{"name", one.name},
                       {"unit", one.unit},
                       {"before", one.before},
                       {"after", one.after},
                       {"worse", one.is_worse}});
  }
  auto sites = ordered_json::array();
  for (const ComparedSite& one : comparison.sites) {
    ordered_json site = {{"site", one.site}};
    if (comparison.is_counted) {
      site["accesses"] = one.accesses;
    } else {
      site["stall_seconds"] = one.stall_seconds;
    }
    site["peak_bytes"] = one.peak_bytes;
    sites.push_back(std::move(site));
  }
  return {{"format", kJsonFormat},
          {"worse", comparison.is_worse},
          {"figures", std::move(figures)},
          {"sites", std::move(sites)}};
}

}  // namespace farheap::tool
