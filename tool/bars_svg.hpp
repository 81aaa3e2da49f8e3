// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bars as a picture (SVG) that stands for itself: panels side by side, one bar for each value, with its spread.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

namespace farheap::tool {

struct Bar {
  std::string name;
  double value = 0, low = 0, high = 0;
};
struct BarPanel {
  std::string title;  // with the unit
  std::vector<Bar> bars;
};

[[nodiscard]] std::string bars_svg(const std::string& title, const std::vector<BarPanel>& panels);

}  // namespace farheap::tool
