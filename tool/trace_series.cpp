// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "trace_series.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace farheap::tool {
namespace {

// Spreads an amount evenly over a stretch of a row of pieces. Positions are in pieces.
class Spread {
 public:
  Spread(double from, double to, std::size_t pieces)
      : from_(std::clamp(from, 0.0, static_cast<double>(pieces))),
        to_(std::clamp(to, from_, static_cast<double>(pieces))),
        pieces_(pieces) {}

  // share(piece, part): the parts add up to 1.
  template <class Share>
  void each(Share share) const {
    const auto first = std::min(static_cast<std::size_t>(from_), pieces_ - 1);
    if (to_ - from_ < 1e-9) return share(first, 1.0);
    for (std::size_t piece = first; piece < pieces_ && static_cast<double>(piece) < to_; ++piece) {
      const double begin = std::max(from_, static_cast<double>(piece));
      const double end = std::min(to_, static_cast<double>(piece) + 1);
      share(piece, (end - begin) / (to_ - from_));
    }
  }

 private:
  double from_;
  double to_;
  std::size_t pieces_;
};

}  // namespace

double duration(const Trace& trace) { return std::max(trace.last().seconds, 1e-6); }

Series rate_series(const Trace& trace, std::size_t pieces, std::uint64_t CounterValues::* amount) {
  Series series(pieces, 0.0);
  const double piece = duration(trace) / static_cast<double>(pieces);
  double from = 0;
  std::uint64_t before = 0;
  for (const auto& sample : trace.samples) {
    const auto grown = static_cast<double>(sample.counters.*amount - before);
    Spread(from / piece, sample.seconds / piece, pieces).each([&](std::size_t at, double part) {
      series[at] += grown * part / piece;
    });
    from = sample.seconds;
    before = sample.counters.*amount;
  }
  return series;
}

Series level_series(const Trace& trace, std::size_t pieces, const std::function<std::uint64_t(const Sample&)>& level) {
  constexpr double kNone = -1;
  Series series(pieces, kNone);
  const double piece = duration(trace) / static_cast<double>(pieces);
  for (const auto& sample : trace.samples) {
    const auto at = std::min(static_cast<std::size_t>(sample.seconds / piece), pieces - 1);
    series[at] = std::max(series[at], static_cast<double>(level(sample)));
  }
  double last = 0;
  for (auto& value : series) last = value = value == kNone ? last : value;
  return series;
}

HeatMap heat_map(const Trace& trace, std::size_t rows, std::size_t columns) {
  HeatMap map{0, rows, columns, Series(rows * columns, 0.0)};
  for (const auto& sample : trace.samples) {
    for (const auto& range : sample.ranges) map.end_offset = std::max(map.end_offset, range.offset + range.bytes);
  }
  if (map.end_offset == 0) return map;
  const double row = static_cast<double>(map.end_offset) / static_cast<double>(rows);
  const double column = duration(trace) / static_cast<double>(columns);
  double from = 0;
  for (const auto& sample : trace.samples) {
    const Spread times(from / column, sample.seconds / column, columns);
    for (const auto& range : sample.ranges) {
      const auto bytes = static_cast<double>(range.counts[base::Heat::kBytesRead]) +
                         static_cast<double>(range.counts[base::Heat::kBytesWritten]);
      const auto begin = static_cast<double>(range.offset);
      const Spread places(begin / row, (begin + static_cast<double>(range.bytes)) / row, rows);
      if (bytes == 0) continue;
      places.each([&](std::size_t y, double part) {
        times.each([&](std::size_t x, double share) {
          map.bytes_per_second[y * columns + x] += bytes * part * share / column;
        });
      });
    }
    from = sample.seconds;
  }
  return map;
}

std::vector<RangeSample> whole_ranges(const Trace& trace) {
  std::map<int, std::uint64_t> widest;  // ranges double as a heap grows
  for (const auto& sample : trace.samples) {
    for (const auto& range : sample.ranges) widest[range.pid] = std::max(widest[range.pid], range.bytes);
  }
  std::map<std::pair<int, std::uint64_t>, RangeSample> sums;
  for (const auto& sample : trace.samples) {
    for (const auto& range : sample.ranges) {
      const std::uint64_t bytes = widest[range.pid];
      const std::uint64_t offset = range.offset / bytes * bytes;
      auto& sum = sums[{range.pid, offset}];
      sum.pid = range.pid;
      sum.offset = offset;
      sum.bytes = bytes;
      sum.counts += range.counts;
    }
  }
  std::vector<RangeSample> result;
  result.reserve(sums.size());
  for (auto& [key, range] : sums) result.push_back(range);
  return result;
}

}  // namespace farheap::tool
