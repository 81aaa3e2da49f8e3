// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/bigtable/counter.hpp"

#include <algorithm>

#include "base/mutex.hpp"
#include "engines/space/lost_races.hpp"

namespace farheap::engines::bigtable {
namespace {

constexpr std::size_t kMostStamps = 30;
constexpr std::size_t kMostRemembered = 1024;

std::int64_t value_in(std::string_view cell) {
  return cell.size() < kVersionBytes ? 0 : static_cast<std::int64_t>(number_in(cell));
}
// The newest first.
std::string_view stamps_in(std::string_view cell) { return cell.substr(std::min(cell.size(), kVersionBytes)); }
bool has_stamp(std::string_view cell, Version stamp) {
  for (auto all = stamps_in(cell); all.size() >= kVersionBytes; all.remove_prefix(kVersionBytes)) {
    if (number_in(all) == stamp) return true;
  }
  return false;
}

// Whether all that came between `older` and `newer` left its stamp in `newer`.
bool reaches_back(std::string_view newer, std::string_view older) {
  const auto stamps = stamps_in(newer);
  return stamps.size() < kMostStamps * kVersionBytes || has_stamp(newer, number_in(stamps_in(older)));
}

std::string sum_cell(std::string_view cell, std::int64_t delta, Version stamp) {
  const auto sum = static_cast<std::uint64_t>(value_in(cell)) + static_cast<std::uint64_t>(delta);
  auto next = number_bytes(sum) + number_bytes(stamp);
  next += stamps_in(cell).substr(0, (kMostStamps - 1) * kVersionBytes);
  return next;
}

}  // namespace

Answer<std::string> Counters::read(const std::string& key) {
  auto rows = space_.client().read(row_of(key));
  if (!rows) return tl::unexpected(rows.error());
  const auto* cell = rows->empty() ? nullptr : rows->front().find(kCount);
  if (cell == nullptr) return std::string();
  if (cell->value.size() < kVersionBytes || cell->value.size() % kVersionBytes != 0) {
    return tl::unexpected(grpc::Status(grpc::StatusCode::DATA_LOSS, "the counter's cell is not one of a counter"));
  }
  if (const auto stamps = stamps_in(cell->value); !stamps.empty()) space_.clock().has_seen(number_in(stamps));
  return cell->value;
}

Answer<std::int64_t> Counters::add(std::string_view counter, std::int64_t delta) {
  const auto key = space_.keys().counter(counter);
  if (delta == 0) return read(key).map([](const std::string& cell) { return value_in(cell); });
  const base::LockGuard one_at_a_time(mutex_);
  if (cells_.size() >= kMostRemembered) cells_.clear();
  return add_to(cells_[key], key, delta);
}

Answer<std::vector<NamedCounter>> Counters::all() {
  const auto prefix = space_.keys().counters();
  auto request = rows_with(prefix);
  newest_of(*request.mutable_filter(), kCount);
  const auto rows = space_.client().read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  std::vector<NamedCounter> all;
  for (const auto& row : *rows) all.push_back({row.key.substr(prefix.size()), value_in(row.cells.front().value)});
  return all;
}

Answer<std::int64_t> Counters::add_to(std::string& cell, const std::string& key, std::int64_t delta) {
  for (unsigned lost_races = 0;; ++lost_races) {
    const auto stamp = space_.clock().next();
    const auto next = sum_cell(cell, delta, stamp);
    api::CheckAndMutateRowRequest request;
    request.set_row_key(key);
    auto& predicate = *request.mutable_predicate_filter();
    newest_of(predicate, kCount);
    if (!cell.empty()) {
      auto& range = *predicate.mutable_chain()->add_filters()->mutable_value_range_filter();
      range.set_start_value_closed(cell);
      range.set_end_value_closed(cell);
    }
    auto& mutations = cell.empty() ? *request.mutable_false_mutations() : *request.mutable_true_mutations();
    set_cell(mutations, kCount, cell_time_of(stamp), next);
    const auto checked = space_.client().check_and_mutate(std::move(request));
    if (!checked && reply_of(checked.error()) != Reply::kUnclear) return tl::unexpected(checked.error());
    const bool was_unclear = !checked || checked->was_unclear;
    if (checked && checked->matched != cell.empty()) {
      cell = next;
      return value_in(next);
    }
    auto found = read(key);
    if (!found && was_unclear) return tl::unexpected(grpc::Status(grpc::StatusCode::UNKNOWN, "no answer came"));
    if (!found) return tl::unexpected(found.error());
    if (was_unclear) {
      const bool is_same = *found == cell;  // a late request may still find it as it wants it
      const bool is_done = has_stamp(*found, stamp);
      if (!is_done && (is_same || !reaches_back(*found, cell))) {
        return tl::unexpected(grpc::Status(grpc::StatusCode::UNKNOWN, "no answer came"));
      }
      cell = std::move(*found);
      if (is_done) return value_in(next);
    } else {
      cell = std::move(*found);
    }
    pause_for_others(lost_races);
  }
}

}  // namespace farheap::engines::bigtable
