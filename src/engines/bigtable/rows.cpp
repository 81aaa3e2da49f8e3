// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/bigtable/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "engines/space/version_clock.hpp"

namespace farheap::engines::bigtable {
namespace {

constexpr std::size_t kDigits = 16;

}  // namespace

std::string Keys::block(std::uint64_t number) const { return fmt::format("{}b/{:016x}", prefix, number); }

std::optional<std::uint64_t> Keys::number_of(std::string_view key) const {
  const auto begin = prefix.size() + 2;
  if (key.size() != begin + kDigits || !key.starts_with(prefix)) return std::nullopt;
  std::uint64_t number = 0;
  const auto* end = key.data() + key.size();
  const auto read = std::from_chars(key.data() + begin, end, number, 16);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::string behind(std::string prefix) {
  ++prefix.back();
  return prefix;
}

std::string number_bytes(std::uint64_t number) {
  std::string bytes(sizeof number, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> (56 - 8 * i));
  return bytes;
}

std::uint64_t number_in(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

std::int64_t cell_time_of(Version version) {
  return static_cast<std::int64_t>(VersionClock::microseconds_of(version)) * 1000;
}

void ChunkReader::take(const api::ReadRowsResponse& response) {
  for (const auto& chunk : response.chunks()) {
    if (chunk.reset_row()) {
      inside_cell_ = false;
      taker_.forget_row();
      continue;
    }
    if (!inside_cell_) {
      if (!chunk.row_key().empty()) key_ = chunk.row_key();
      if (chunk.has_qualifier()) column_ = chunk.qualifier().value();
      taker_.begin(key_, column_, chunk.timestamp_micros());
    }
    taker_.piece(chunk.value());
    inside_cell_ = chunk.value_size() != 0;  // more of this cell follows
    if (!inside_cell_) taker_.end();
  }
}

const Cell* Row::find(std::string_view column) const {
  const auto found = std::ranges::find(cells, column, &Cell::column);
  return found != cells.end() ? &*found : nullptr;
}

void RowsTaker::begin(std::string_view key, std::string_view column, std::int64_t time) {
  if (rows_.empty() || rows_.back().key != key) rows_.push_back({std::string(key), {}});
  rows_.back().cells.push_back({std::string(column), time, {}});
}

void RowsTaker::forget_row() {
  if (!rows_.empty()) rows_.pop_back();
}

void newest_of(api::RowFilter& filter, std::string_view column) {
  auto& chain = *filter.mutable_chain();
  auto& range = *chain.add_filters()->mutable_column_range_filter();
  range.set_family_name(kFamily);
  range.set_start_qualifier_closed(std::string(column));
  range.set_end_qualifier_closed(std::string(column));
  chain.add_filters()->set_cells_per_column_limit_filter(1);
}

void newest_is(api::RowFilter& filter, std::string_view column, Version version) {
  newest_of(filter, column);
  auto& range = *filter.mutable_chain()->add_filters()->mutable_value_range_filter();
  range.set_start_value_closed(number_bytes(version));
  range.set_end_value_open(number_bytes(version + 1));
}

}  // namespace farheap::engines::bigtable
