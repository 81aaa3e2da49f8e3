// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/bigtable/put.hpp"

#include <algorithm>

#include "engines/bigtable/get.hpp"
#include "engines/grpc/streams.hpp"

namespace farheap::engines::bigtable {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr std::size_t kRequestRows = 10000;
constexpr std::size_t kWritesInFlight = 4;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string cell_of(Version version, std::span<const std::byte> page) {
  std::string cell;
  cell.reserve(kVersionBytes + page.size());
  cell = number_bytes(version);
  cell += text_of(page);
  return cell;
}

Outcome outcome_of(const grpc::Status& status, bool was_unclear) {
  if (reply_of(status) == Reply::kDone) return Outcome::kOk;
  if (was_unclear || reply_of(status) == Reply::kUnclear) return Outcome::kUnknown;
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? Outcome::kNoSpace : Outcome::kFailed;
}

}  // namespace

// A block to be written, or erased.
struct Writer::Row {
  std::string key;
  std::span<const std::byte> page;  // empty: to be erased
  Version version = 0;
  Put* entry = nullptr;
  bool done = false;
  grpc::Status status;
};

void Writer::fill(api::MutateRowsRequest::Entry& entry, const Row& row) const {
  entry.set_row_key(row.key);
  const auto time = cell_time_of(row.version);
  if (!row.page.empty() || was_unclear_) {
    set_cell(*entry.mutable_mutations(), kPage, time, cell_of(row.version, row.page));
    return;
  }
  auto& older = *entry.add_mutations()->mutable_delete_from_column();
  older.set_family_name(kFamily);
  older.set_column_qualifier(kPage);
  older.mutable_time_range()->set_end_timestamp_micros(time);
}

grpc::Status Writer::write_round(std::span<Row*> pending, Attempts& attempts) {
  const std::size_t bytes = pending.front()->page.empty() ? 1 : block_bytes_;
  const std::size_t most = std::clamp<std::size_t>(kWriteBytes / bytes, 1, kRequestRows);
  const auto part = [&](std::size_t i) { return pending.subspan(i * most, std::min(most, pending.size() - i * most)); };
  const std::size_t parts = (pending.size() + most - 1) / most;
  api::MutateRowsRequest request;
  const auto start = [&](std::size_t i, grpc::ClientContext& context, grpc::CompletionQueue* queue, void* tag) {
    request.Clear();
    space_.client().address(request);
    for (const auto* row : part(i)) fill(*request.add_entries(), *row);
    return space_.client().stub().AsyncMutateRows(&context, request, queue, tag);
  };
  const auto take = [&](std::size_t i, const api::MutateRowsResponse& response) {
    for (const auto& entry : response.entries()) {
      if (entry.index() < 0 || static_cast<std::size_t>(entry.index()) >= part(i).size()) continue;
      auto& row = *part(i)[static_cast<std::size_t>(entry.index())];
      row.status = grpc::Status(static_cast<grpc::StatusCode>(entry.status().code()), entry.status().message());
      row.done = row.status.ok();
    }
  };
  for (auto* row : pending) row->status = grpc::Status(grpc::StatusCode::UNKNOWN, "there was no answer for this row");
  const auto statuses = run_streams<api::MutateRowsResponse>(parts, kWritesInFlight, attempts.deadline(), start, take);
  grpc::Status worst;
  for (std::size_t i = 0; i < parts; ++i) {
    for (auto* row : part(i)) {
      if (row->done) continue;
      if (!statuses[i].ok()) row->status = statuses[i];
      if (reply_of(row->status) == Reply::kUnclear) was_unclear_ = true;
      if (worst.ok() || reply_of(row->status) == Reply::kRefused) worst = row->status;
    }
  }
  return worst;
}

grpc::Status Writer::write(std::span<Row> rows) {
  std::vector<Row*> pending;
  for (auto& row : rows) pending.push_back(&row);
  auto attempts = space_.client().writing_attempts();
  grpc::Status status;
  while (!pending.empty()) {
    status = write_round(pending, attempts);
    std::erase_if(pending, [](const Row* row) { return row->done; });
    if (!pending.empty() && !attempts.again(status)) break;
  }
  for (auto& row : rows) {
    if (row.entry == nullptr) continue;
    const auto outcome = row.done ? Outcome::kOk : outcome_of(row.status, attempts.was_unclear());
    if (row.entry->outcome == Outcome::kPending || outcome > row.entry->outcome) row.entry->outcome = outcome;
  }
  return pending.empty() ? grpc::Status() : status;
}

grpc::Status Writer::put(std::span<Put> batch) {
  std::vector<Row> rows;
  std::vector<Put*> swaps;
  std::size_t count = 0;
  for (const auto& entry : batch) count += entry.expected ? 0 : entry.from.size() / block_bytes_;
  rows.reserve(count);
  Version version = count > 0 ? space_.clock().first_of(count) : 0;
  for (auto& entry : batch) {
    if (entry.expected) {
      swaps.push_back(&entry);
      continue;
    }
    const bool is_single = entry.from.size() == block_bytes_;
    entry.version = is_single ? version : 0;
    for (std::size_t at = 0; at < entry.from.size(); at += block_bytes_) {
      rows.push_back({.key = space_.keys().block(entry.block + at / block_bytes_),
                      .page = entry.from.subspan(at, block_bytes_),
                      .version = version,
                      .entry = &entry});
      version += Version{1} << VersionClock::kChanceBits;
    }
  }
  grpc::Status status;
  if (!rows.empty()) status = write(rows);
  if (!swaps.empty()) {
    const auto swapped = swap(swaps);
    if (status.ok()) status = swapped;
  }
  return status;
}

// ---- compare-and-swap

void Writer::fill(api::CheckAndMutateRowRequest& request, const Put& entry, Version expected) const {
  space_.client().address(request);
  request.set_row_key(space_.keys().block(entry.block));
  if (expected == 0) {
    newest_of(*request.mutable_predicate_filter(), kPage);
  } else {
    newest_is(*request.mutable_predicate_filter(), kPage, expected);
  }
  auto& mutations = expected == 0 ? *request.mutable_false_mutations() : *request.mutable_true_mutations();
  set_cell(mutations, kPage, cell_time_of(entry.version), cell_of(entry.version, entry.from));
}

grpc::Status Writer::swap(std::span<Put*> entries) {
  for (auto* entry : entries) {
    space_.clock().has_seen(entry->expected.value_or(0));
    entry->version = space_.clock().next();
  }
  // The first attempts together; what is not settled by them, one by one.
  auto attempts = space_.client().writing_attempts();
  std::vector<api::CheckAndMutateRowResponse> responses(entries.size());
  const auto statuses = run_calls(responses, kWritesInFlight, attempts.deadline(),
                                  [&](std::size_t i, grpc::ClientContext& context, grpc::CompletionQueue* queue) {
                                    api::CheckAndMutateRowRequest request;
                                    fill(request, *entries[i], entries[i]->expected.value_or(0));
                                    return space_.client().stub().AsyncCheckAndMutateRow(&context, request, queue);
                                  });
  grpc::Status worst;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto& entry = *entries[i];
    grpc::Status status = statuses[i];
    bool matched = responses[i].predicate_matched();
    bool was_unclear = reply_of(status) == Reply::kUnclear;
    if (was_unclear) was_unclear_ = true, space_.client().watch()->doubt();
    if (is_passing(reply_of(status))) {
      api::CheckAndMutateRowRequest request;
      fill(request, entry, entry.expected.value_or(0));
      const auto again = space_.client().check_and_mutate(std::move(request));
      status = again ? grpc::Status() : again.error();
      matched = again && again->matched;
      was_unclear = was_unclear || (again ? again->was_unclear : reply_of(status) == Reply::kUnclear);
    }
    if (status.ok()) status = swap_one(entry, matched, was_unclear);
    if (!status.ok()) {
      entry.outcome = outcome_of(status, was_unclear);
      entry.version = 0;
      if (worst.ok()) worst = status;
    }
  }
  return worst;
}

// Settles an entry whose request was answered.
grpc::Status Writer::swap_one(Put& entry, bool matched, bool was_unclear) {
  for (Version expected = entry.expected.value_or(0);;) {
    if (matched == (expected != 0)) {
      entry.outcome = Outcome::kOk;
      return {};
    }
    const auto found = find_version(space_, entry.block);
    if (!found) return found.error();
    if (was_unclear && found->version == entry.version) {  // an attempt whose answer was lost
      entry.outcome = Outcome::kOk;
      return {};
    }
    const Version present = found->is_erased ? 0 : found->version;
    if (present != entry.expected.value_or(0)) {
      entry.outcome = Outcome::kConflict;
      entry.version = present;
      return {};
    }
    // Absent as expected, but by an erasure that left a cell; or somebody erased it just now.
    expected = found->version;
    if (entry.version <= expected) entry.version = space_.clock().next();
    api::CheckAndMutateRowRequest request;
    fill(request, entry, expected);
    const auto again = space_.client().check_and_mutate(std::move(request));
    if (!again) return again.error();
    matched = again->matched;
    was_unclear = was_unclear || again->was_unclear;
  }
}

// ---- erasing

grpc::Status Writer::erase_keys(std::span<const std::string> keys) {
  std::vector<Row> rows;
  rows.reserve(keys.size());
  Version version = space_.clock().first_of(keys.size());
  for (const auto& key : keys) {
    rows.push_back({.key = key, .version = version});
    version += Version{1} << VersionClock::kChanceBits;
  }
  return rows.empty() ? grpc::Status() : write(rows);
}

grpc::Status Writer::erase(std::uint64_t first, std::uint64_t last) {
  // So few are erased unseen; of a wide range, only what is there is touched.
  constexpr std::uint64_t kFew = 256;
  if (last - first < kFew) {
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i <= last - first; ++i) keys.push_back(space_.keys().block(first + i));
    return erase_keys(keys);
  }
  api::ReadRowsRequest request;
  auto& range = *request.mutable_rows()->add_row_ranges();
  range.set_start_key_closed(space_.keys().block(first));
  range.set_end_key_closed(space_.keys().block(last));
  grpc::Status erased;
  const auto read = space_.client().each_key(std::move(request), [&](std::span<const std::string> keys) {
    erased = erase_keys(keys);
    return erased.ok();
  });
  return erased.ok() ? read : erased;
}

}  // namespace farheap::engines::bigtable
