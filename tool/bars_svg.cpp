// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bars_svg.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "html_text.hpp"

namespace farheap::tool {
namespace {

constexpr int kTop = 64, kHeight = 260, kBottom = 72, kLeft = 24, kBarWidth = 56, kGap = 24, kBetween = 56;

int width_of(const BarPanel& panel) { return static_cast<int>(panel.bars.size()) * (kBarWidth + kGap); }

std::string number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 10 ? 1 : 2);
}

std::string text(double x, double y, const std::string& words, const char* more) {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' {}>{}</text>\n", x, y, more, escaped(words));
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}'/>\n", x1, y1, x2, y2, colour);
}

std::string bar_svg(const Bar& bar, double x, double greatest) {
  const auto height = [&](double value) { return kHeight * value / greatest; };
  const double base = kTop + kHeight;
  const double middle = x + kBarWidth / 2.0;
  std::string svg = fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{}' height='{:.1f}' fill='#4878a8'/>\n", x,
                                base - height(bar.value), kBarWidth, height(bar.value));
  svg += line(middle, base - height(bar.low), middle, base - height(bar.high), "#222");
  for (const double end : {bar.low, bar.high}) {
    svg += line(middle - 6, base - height(end), middle + 6, base - height(end), "#222");
  }
  svg += text(middle, base - height(bar.high) - 6, number(bar.value), "text-anchor='middle'");
  double y = base + 16;
  for (std::size_t at = 0; at < bar.name.size(); y += 14) {  // a word a line
    const auto end = std::min(bar.name.find(' ', at), bar.name.size());
    svg += text(middle, y, bar.name.substr(at, end - at), "text-anchor='middle'");
    at = end + 1;
  }
  return svg;
}

}  // namespace

std::string bars_svg(const std::string& title, const std::vector<BarPanel>& panels) {
  int width = kLeft;
  std::string body;
  for (const BarPanel& panel : panels) {
    double greatest = 1e-9;
    for (const Bar& bar : panel.bars) greatest = std::max({greatest, bar.high * 1.1, bar.value * 1.1});
    body += text(width, kTop - 16, panel.title, "font-weight='bold'");
    body += line(width, kTop + kHeight, width + width_of(panel), kTop + kHeight, "#222");
    double x = width + kGap / 2.0;
    for (const Bar& bar : panel.bars) {
      body += bar_svg(bar, x, greatest);
      x += kBarWidth + kGap;
    }
    width += width_of(panel) + kBetween;
  }
  const int height = kTop + kHeight + kBottom;
  return fmt::format(
             "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
             "font-family='sans-serif' font-size='12'>\n<rect width='100%' height='100%' fill='white'/>\n",
             width, height) +
         text(kLeft, 24, title, "font-size='15'") + body + "</svg>\n";
}

}  // namespace farheap::tool
