// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Charts over time as SVG inside a page of HTML. Colours are the page's (classes c0 to c3, ink, grid).
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "trace_series.hpp"

namespace farheap::tool {

enum class AxisUnit { kNumber, kBytes, kPercent };

struct ChartSeries {
  std::string name;
  Series values;
};

struct Chart {
  std::string title;
  AxisUnit unit = AxisUnit::kNumber;
  bool per_second = false;
  bool stacked = false;  // areas one on top of the other, otherwise lines (the only one: an area)
  std::vector<ChartSeries> series;
  double line = -1;  // drawn across; below 0: none
  std::string line_name;
};

// With heading, legend, axes and units.
[[nodiscard]] std::string chart_html(const Chart& chart, double seconds);
[[nodiscard]] std::string heat_map_html(const HeatMap& map, double seconds);
// Safe as text and in attributes.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace farheap::tool
