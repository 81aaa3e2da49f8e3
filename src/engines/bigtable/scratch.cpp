// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scratch stores: a beat says that the program lives. A thread renews it, because a program may go for hours without a
// call; where it stops, the next opener takes the beat away first and the rows after it, so that a program that was
// only frozen finds out before it reads a row that is gone.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "engines/bigtable/space.hpp"

namespace farheap::engines::bigtable {
namespace {

constexpr std::chrono::minutes kStaleAfter{10};

}  // namespace

grpc::Status Space::beat() {
  const auto key = place_keys_.beats() + id_;
  const auto now = clock_.now();
  api::CheckAndMutateRowRequest request;
  request.set_row_key(key);
  const bool first = last_beat_ == 0;
  if (first) {
    newest_of(*request.mutable_predicate_filter(), kBeat);
  } else {
    newest_is(*request.mutable_predicate_filter(), kBeat, last_beat_);
  }
  auto& mutations = first ? *request.mutable_false_mutations() : *request.mutable_true_mutations();
  set_cell(mutations, kBeat, cell_time_of(clock_.next()), number_bytes(now));
  const auto done = client_->check_and_mutate(std::move(request));
  if (!done) return done.error();
  if (done->matched == first) {  // not done now; but an attempt whose answer was lost may have done it
    const auto rows = client_->read(row_of(key));
    if (!rows) return rows.error();
    const auto* cell = rows->empty() ? nullptr : rows->front().find(kBeat);
    if (cell == nullptr || cell->value != number_bytes(now)) {
      (void)lost(fmt::format("it gave no sign of life for {} minutes, and was taken for one of a killed program",
                             kStaleAfter.count()));
      return {};
    }
  }
  last_beat_ = now;
  return {};
}

Answer<std::vector<Scratch>> scratch_stores(Client& client, const Keys& name_keys, const VersionClock& clock) {
  auto request = rows_with(name_keys.beats());
  newest_of(*request.mutable_filter(), kBeat);
  auto rows = client.read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  constexpr auto kStale = static_cast<std::uint64_t>(std::chrono::microseconds(kStaleAfter).count());
  std::vector<Scratch> found;
  for (auto& row : *rows) {
    auto& value = row.cells.front().value;
    if (value.size() != kVersionBytes) continue;
    const bool is_stale = number_in(value) + kStale < clock.now();
    found.push_back({row.key.substr(name_keys.beats().size()), std::move(value), is_stale});
  }
  return found;
}

grpc::Status collect_scratch(Client& client, const Keys& name_keys, const Scratch& scratch) {
  const auto beat_key = name_keys.beats() + scratch.id;
  const auto last = number_in(scratch.beat);
  if (last != 0) {
    api::CheckAndMutateRowRequest request;
    request.set_row_key(beat_key);
    newest_is(*request.mutable_predicate_filter(), kBeat, last);
    set_cell(*request.mutable_true_mutations(), kBeat, std::numeric_limits<std::int64_t>::max() / 1000 * 1000,
             number_bytes(0));
    const auto taken = client.check_and_mutate(std::move(request));
    if (!taken) return taken.error();
    if (!taken->matched && !taken->was_unclear) return {};
  }
  const auto dropped = client.drop_rows(name_keys.scratch(scratch.id));
  return dropped.ok() ? client.delete_row(beat_key) : dropped;
}

// What cannot be collected now is collected by the next.
void Space::collect() {
  const auto found = scratch_stores(*client_, place_keys_, clock_);
  if (!found) return;
  for (const auto& scratch : *found) {
    if (scratch.is_stale) (void)collect_scratch(*client_, place_keys_, scratch);
  }
}

Space::~Space() {
  heartbeat_.stop();
  if (last_beat_ == 0) return;
  client_->hurry();
  if (client_->drop_rows(keys_.prefix).ok()) (void)client_->delete_row(place_keys_.beats() + id_);
}

}  // namespace farheap::engines::bigtable
