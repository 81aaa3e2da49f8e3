// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/bigtable/space.hpp"

#include <chrono>
#include <cstdlib>

namespace farheap::engines::bigtable {
namespace {

constexpr char kWhat[] = "cannot open the store";
constexpr std::chrono::milliseconds kClockTolerance{50};
constexpr char kClock[] = "clock";

}  // namespace

Space::Space(std::unique_ptr<Client> client, std::unique_ptr<Stores> stores, const StoreOptions& options)
    : ServerSpace(*client, *stores, options),
      client_(std::move(client)),
      stores_(std::move(stores)),
      keys_(keys_of(key())) {}

Result<std::unique_ptr<Space>> Space::open(std::unique_ptr<Client> client, const StoreOptions& options) {
  auto stores = std::make_unique<Stores>(*client);
  std::unique_ptr<Space> space(new Space(std::move(client), std::move(stores), options));
  if (auto ok = space->enter(); !ok) return fail(std::move(ok.error()));
  return space;
}

Space::~Space() {
  (void)leave();
  if (last_beat_ == 0) return;
  client_->hurry();
  if (client_->drop_rows(keys_.prefix).ok()) (void)client_->delete_row(beat_key());
}

Status Space::prepare() {
  if (auto ok = make_table_if_missing(); !ok) return ok;
  if (auto ok = look_at_clock(); !ok) return ok;
  if (is_kept()) return {};
  if (const auto status = try_to_beat(); !status.ok()) return fail(client_->error(status, kWhat));
  return {};
}

grpc::Status Space::make(const About& about) {
  api::CheckAndMutateRowRequest request;
  request.set_row_key(keys_.about());
  newest_of(*request.mutable_predicate_filter(), kAbout);
  set_cell(*request.mutable_false_mutations(), kAbout, cell_time_of(clock().next()), about_text(about));
  const auto made = client_->check_and_mutate(std::move(request));
  return made ? grpc::Status() : made.error();
}

// An epoch more or less does no harm: it only must not go backwards.
Answer<std::uint64_t> Space::begin() {
  auto attempts = client_->attempts();
  auto epoch = client_->add(keys_.about(), kEpoch, 1);
  while (!epoch && attempts.again(epoch.error())) epoch = client_->add(keys_.about(), kEpoch, 1);
  if (!epoch) return tl::unexpected(epoch.error());
  return static_cast<std::uint64_t>(*epoch);
}

Status Space::make_table_if_missing() {
  const auto row = client_->read(row_of(keys_.about()));
  if (row) return {};
  if (row.error().error_code() != grpc::StatusCode::NOT_FOUND) return fail(client_->error(row.error(), kWhat));
  if (const auto made = client_->create_table(); !made.ok()) {
    return fail(client_->error(made, "cannot make the table"));
  }
  return {};
}

// A machine's clock may be wrong; the server's is the one that all agree on.
Status Space::look_at_clock() {
  const auto key = keys_of({this->key().name}).prefix + "t/clock";
  api::MutateRowRequest request;
  auto& older = *request.add_mutations()->mutable_delete_from_column();
  older.set_family_name(kFamily);
  older.set_column_qualifier(kClock);
  auto& cell = *request.add_mutations()->mutable_set_cell();
  cell.set_family_name(kFamily);
  cell.set_column_qualifier(kClock);
  cell.set_timestamp_micros(-1);  // the server's own
  const auto before = clock().now();
  auto status = client_->mutate(key, request);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND || status.error_code() == grpc::StatusCode::INTERNAL) {
    if (const auto made = client_->create_table(); !made.ok()) {  // the table was there, its column family was not
      return fail(client_->error(made, "cannot make the table"));
    }
    status = client_->mutate(key, request);
  }
  if (!status.ok()) return fail(client_->error(status, kWhat));
  const auto after = clock().now();
  const auto rows = client_->read(row_of(key));
  if (!rows) return fail(client_->error(rows.error(), kWhat));
  const auto* found = rows->empty() ? nullptr : rows->front().find(kClock);
  if (found == nullptr) return {};
  const auto ahead = found->time - static_cast<std::int64_t>(before / 2 + after / 2);
  const auto tolerance = std::chrono::microseconds(kClockTolerance).count() + static_cast<std::int64_t>(after - before);
  if (std::abs(ahead) > tolerance) clock().set_ahead(ahead);
  return {};
}

grpc::Status Space::try_to_beat() {
  const auto now = clock().now();
  api::CheckAndMutateRowRequest request;
  request.set_row_key(beat_key());
  const bool first = last_beat_ == 0;
  if (first) {
    newest_of(*request.mutable_predicate_filter(), kBeat);
  } else {
    newest_is(*request.mutable_predicate_filter(), kBeat, last_beat_);
  }
  auto& mutations = first ? *request.mutable_false_mutations() : *request.mutable_true_mutations();
  set_cell(mutations, kBeat, cell_time_of(clock().next()), number_bytes(now));
  const auto done = client_->check_and_mutate(std::move(request));
  if (!done) return done.error();
  if (done->matched == first) {  // not done now; but an attempt whose answer was lost may have done it
    const auto rows = client_->read(row_of(beat_key()));
    if (!rows) return rows.error();
    const auto* cell = rows->empty() ? nullptr : rows->front().find(kBeat);
    if (cell == nullptr || cell->value != number_bytes(now)) {
      (void)lost(no_sign_of_life());
      return {};
    }
  }
  last_beat_ = now;
  return {};
}

}  // namespace farheap::engines::bigtable
