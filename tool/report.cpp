// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// farheap report FILE: what a recorded run did over time.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/environment.hpp"
#include "output_file.hpp"
#include "report_forms.hpp"
#include "terminal.hpp"
#include "top_picture.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

// As the C library decides it: the first of the three that is set.
bool terminal_is_utf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = base::environment(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

Status write_page(const std::string& path, const std::string& page) {
  return write_output(path, page, "cannot write the page");
}

std::string json_text(const Trace& trace) {
  auto report = nlohmann::ordered_json::parse(report_json(summary_of(trace)));
  report["ended"] = trace.end.has_value();
  report["samples"] = trace.samples.size();
  auto ranges = nlohmann::ordered_json::array();
  for (const auto& range : whole_ranges(trace)) ranges.push_back(range_json(range));
  report["heap_address"] = trace.last().heap_address;
  report["ranges"] = std::move(ranges);
  return report.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

int report(const ReportArguments& arguments) {
  const auto trace = read_trace(arguments.trace);
  if (!trace) {
    complain(trace.error());
    return kFailed;
  }
  if (!arguments.html.empty()) {
    if (const auto written = write_page(arguments.html, report_html(*trace)); !written) {
      complain(written.error());
      return kFailed;
    }
    say(fmt::format("the page is in {}; any browser opens it", arguments.html));
  }
  if (arguments.json) {
    print_out("{}\n", json_text(*trace));
  } else if (arguments.html.empty()) {
    print_out("{}", report_text(*trace, terminal_is_utf8()));
  }
  return kDone;
}

}  // namespace farheap::tool
