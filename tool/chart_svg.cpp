// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "chart_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "top_picture.hpp"

namespace farheap::tool {
namespace {

// The drawing, and the field inside its axes.
constexpr double kWidth = 900;
constexpr double kHeight = 230;
constexpr double kLeft = 84;
constexpr double kRight = 16;
constexpr double kTop = 10;
constexpr double kBottom = 40;
constexpr double kFieldWidth = kWidth - kLeft - kRight;
constexpr double kFieldHeight = kHeight - kTop - kBottom;

// A value axis: ticks at round numbers of one unit.
struct Axis {
  double step = 1;
  double top = 1;
  double unit = 1;
  std::string suffix;
};

// 1, 2 or 5 times a power of ten, so that there are about `ticks`.
double round_step(double top, int ticks) {
  const double raw = std::max(top, 1e-9) / ticks;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power * (1 + 1e-9)) return factor * power;
  }
  return 10 * power;
}

Axis axis_for(double most, AxisUnit unit, bool per_second) {
  Axis axis;
  if (unit == AxisUnit::kBytes) {
    constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int power = 0;
    for (double rest = most; rest >= 1024 && power < 4; rest /= 1024) ++power;
    axis.unit = std::ldexp(1.0, 10 * power);
    axis.suffix = std::string(" ") + kNames[power];
  } else if (unit == AxisUnit::kPercent) {
    axis.suffix = " %";
  }
  if (per_second) axis.suffix += "/s";
  axis.step = round_step(most / axis.unit, 4);
  axis.top = std::max(1.0, std::ceil(most / axis.unit / axis.step - 1e-9)) * axis.step;
  return axis;
}

// A number without digits that say nothing.
std::string number_text(double value, double step) {
  const int digits = step >= 1 ? 0 : std::min(6, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return fmt::format("{:.{}f}", value, digits);
}

double x_of(double share) { return kLeft + kFieldWidth * share; }
double y_of(double share) { return kTop + kFieldHeight * (1 - std::clamp(share, 0.0, 1.0)); }

std::string value_axis(const Axis& axis) {
  std::string text;
  for (int i = 0; static_cast<double>(i) * axis.step <= axis.top * (1 + 1e-9); ++i) {
    const double value = i * axis.step;
    const double y = y_of(value / axis.top);
    text += fmt::format("<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft, y,
                        kWidth - kRight, y);
    text += fmt::format("<text class=\"label\" text-anchor=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}{}</text>\n", kLeft - 8,
                        y + 4, number_text(value, axis.step), axis.suffix);
  }
  return text;
}

std::string time_axis(double seconds) {
  const double step = round_step(seconds, 8);
  const double bottom = kTop + kFieldHeight;
  std::string text = fmt::format("<line class=\"axis\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                                 kLeft, bottom, kWidth - kRight, bottom);
  for (int i = 0; static_cast<double>(i) * step <= seconds * (1 + 1e-9); ++i) {
    const double x = x_of(i * step / seconds);
    text += fmt::format("<line class=\"axis\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", x, bottom, x,
                        bottom + 4);
    text += fmt::format("<text class=\"label\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x,
                        bottom + 17, number_text(i * step, step));
  }
  return text + fmt::format("<text class=\"label\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">time, s</text>\n",
                            x_of(0.5), kHeight - 6);
}

// The upper edge of a row of values as steps, from left to right or back.
std::string steps(const Series& values, double top, bool back) {
  std::string path;
  const auto count = static_cast<double>(values.size());
  const auto point = [&](std::size_t edge, std::size_t value) {
    path += fmt::format("L{:.1f} {:.1f}", x_of(static_cast<double>(edge) / count), y_of(values[value] / top));
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = back ? values.size() - 1 - i : i;
    point(back ? at + 1 : at, at);
    point(back ? at : at + 1, at);
  }
  path[0] = back ? 'L' : 'M';
  return path;
}

std::string area(const Series& lower, const Series& upper, double top, std::size_t colour) {
  return fmt::format("<path class=\"area c{}\" d=\"{}{}Z\"/>\n", colour, steps(upper, top, false),
                     steps(lower, top, true));
}

Series sum_of(const Series& a, const Series& b) {
  Series sum = a;
  std::transform(a.begin(), a.end(), b.begin(), sum.begin(), std::plus<>());
  return sum;
}

std::string drawn_series(const Chart& chart, double top) {
  std::string text;
  Series below(chart.series.front().values.size(), 0.0);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& values = chart.series[i].values;
    const Series above = sum_of(below, values);
    if (chart.stacked || chart.series.size() == 1) text += area(below, above, top, i);
    if (!chart.stacked) text += fmt::format("<path class=\"line c{}\" d=\"{}\"/>\n", i, steps(values, top, false));
    if (chart.stacked) below = above;
  }
  return text;
}

double most_of(const Chart& chart) {
  double most = chart.line;
  Series sum(chart.series.front().values.size(), 0.0);
  for (const auto& one : chart.series) {
    sum = chart.stacked ? sum_of(sum, one.values) : one.values;
    most = std::max(most, *std::max_element(sum.begin(), sum.end()));
  }
  return most;
}

std::string legend(const Chart& chart) {
  std::string text = "<p class=\"legend\">";
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    text += fmt::format("<span><i class=\"swatch c{}\"></i>{}</span>", i, escaped(chart.series[i].name));
  }
  if (chart.line >= 0) text += "<span><i class=\"dashes\"></i>" + escaped(chart.line_name) + "</span>";
  return text + "</p>\n";
}

std::string opened(const std::string& title) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth, kHeight, escaped(title));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\'': result += "&#39;"; break;
      default: result += static_cast<unsigned char>(c) < ' ' ? '?' : c;
    }
  }
  return result;
}

std::string chart_html(const Chart& chart, double seconds) {
  const Axis axis = axis_for(std::max(most_of(chart), 0.0), chart.unit, chart.per_second);
  const double top = axis.top * axis.unit;
  std::string text = "<h2>" + escaped(chart.title) + "</h2>\n" + legend(chart) + opened(chart.title);
  text += value_axis(axis) + drawn_series(chart, top);
  if (chart.line >= 0) {
    text += fmt::format("<line class=\"limit\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft,
                        y_of(chart.line / top), kWidth - kRight, y_of(chart.line / top));
  }
  return text + time_axis(seconds) + "</svg>\n";
}

std::string heat_map_html(const HeatMap& map, double seconds) {
  const double most = *std::max_element(map.bytes_per_second.begin(), map.bytes_per_second.end());
  const Axis axis = axis_for(static_cast<double>(map.end_offset), AxisUnit::kBytes, false);
  const double top = axis.top * axis.unit;
  const double width = kFieldWidth / static_cast<double>(map.columns);
  const double height = kFieldHeight * (static_cast<double>(map.end_offset) / top) / static_cast<double>(map.rows);
  const std::string title = "Where in the heap bytes moved";
  const auto strongest = size_text(most);
  std::string text =
      "<h2>" + title + "</h2>\n<p class=\"legend\"><span>in and out, together: 0 <i class=\"ramp\"></i> " + strongest +
      "/s for each field; upwards: from the beginning of the heap</span></p>\n" + opened(title) + value_axis(axis);
  for (std::size_t row = 0; row < map.rows; ++row) {
    for (std::size_t column = 0; column < map.columns; ++column) {
      const double share = map.bytes_per_second[row * map.columns + column] / std::max(most, 1e-9);
      if (share < 0.0005) continue;
      text += fmt::format(
          "<rect class=\"c0\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill-opacity=\"{:.2f}\"/>\n",
          kLeft + width * static_cast<double>(column), kTop + kFieldHeight - height * static_cast<double>(row + 1),
          width + 0.1, height + 0.1, 0.08 + 0.92 * std::sqrt(share));
    }
  }
  return text + time_axis(seconds) + "</svg>\n";
}

}  // namespace farheap::tool
