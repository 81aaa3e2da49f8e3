// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/bigtable/space.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdlib>

#include "base/random_number.hpp"

namespace farheap::engines::bigtable {
namespace {

constexpr char kWhat[] = "cannot open the store";
constexpr std::uint64_t kFormat = 1;
constexpr std::chrono::seconds kBeatEvery{20};
constexpr std::chrono::milliseconds kClockTolerance{50};
constexpr char kClock[] = "clock";

}  // namespace

std::string about_text(const About& about) {
  return fmt::format("farheap {} {} {}", about.format, about.block_bytes, about.identity);
}

std::optional<About> about_in(std::string_view text) {
  constexpr std::string_view kMagic = "farheap ";
  if (!text.starts_with(kMagic)) return std::nullopt;
  const auto* at = text.data() + kMagic.size();
  const auto* end = text.data() + text.size();
  About about;
  for (auto* number : {&about.format, &about.block_bytes}) {
    const auto read = std::from_chars(at, end, *number);
    if (read.ec != std::errc() || read.ptr == end || *read.ptr != ' ') return std::nullopt;
    at = read.ptr + 1;
  }
  about.identity.assign(at, end);
  return about;
}

Space::Space(std::unique_ptr<Client> client, const StoreOptions& options)
    : client_(std::move(client)),
      kept_(options.lifetime == Lifetime::kKeep),
      block_bytes_(options.block_bytes),
      place_keys_{client_->place().store_name() + "/"},
      id_(kept_ ? "" : fmt::format("{:016x}", base::random_number())),
      keys_{kept_ ? place_keys_.prefix : place_keys_.scratch(id_)},
      identity_(fmt::format("{:016x}", base::random_number())),
      health_(client_->place().describe(), client_->watch()) {}

Result<std::unique_ptr<Space>> Space::open(std::unique_ptr<Client> client, const StoreOptions& options) {
  std::unique_ptr<Space> space(new Space(std::move(client), options));
  if (auto ok = space->set_up(); !ok) return fail(std::move(ok.error()));
  return space;
}

Status Space::set_up() {
  if (auto ok = make_table_if_missing(); !ok) return ok;
  if (auto ok = look_at_clock(); !ok) return ok;
  if (!kept_) {
    if (const auto status = beat(); !status.ok()) return fail(client_->error(status, kWhat));
  }
  auto row = read_about();
  if (row && !*row) {
    if (auto ok = refuse_foreign_rows(); !ok) return ok;
    api::CheckAndMutateRowRequest request;
    request.set_row_key(keys_.about());
    newest_of(*request.mutable_predicate_filter(), kAbout);
    set_cell(*request.mutable_false_mutations(), kAbout, cell_time_of(clock_.next()),
             about_text({kFormat, block_bytes_, identity_}));
    if (const auto made = client_->check_and_mutate(std::move(request)); !made) {
      return fail(client_->error(made.error(), kWhat));
    }
    row = read_about();  // another one may have been quicker
  }
  if (!row) return fail(client_->error(row.error(), kWhat));
  const auto* cell = *row ? (*row)->find(kAbout) : nullptr;
  const auto about = cell != nullptr ? about_in(cell->value) : std::nullopt;
  if (!about) {
    return fail(ErrorCode::kCorrupt, kWhat, client_->place().describe(), "its description is not one of Farheap's",
                "name another table, or another NAME behind it");
  }
  if (auto ok = check(*about); !ok) return ok;
  identity_ = about->identity;
  // An epoch more or less does no harm: it only must not go backwards.
  auto attempts = client_->attempts();
  auto epoch = client_->add(keys_.about(), kEpoch, 1);
  while (!epoch && attempts.again(epoch.error())) epoch = client_->add(keys_.about(), kEpoch, 1);
  if (!epoch) return fail(client_->error(epoch.error(), kWhat));
  epoch_ = static_cast<std::uint64_t>(*epoch);
  client_->ask_before_writing_again([this] { return still_there().has_value(); });
  collect();
  // A server that cannot be reached is for the calls to tell.
  if (!kept_) heartbeat_.start(kBeatEvery, [this] { (void)beat(); });
  return {};
}

Status Space::check(const About& about) const {
  if (about.format > kFormat) {
    return fail(ErrorCode::kCorrupt, kWhat, client_->place().describe(), fmt::format("it has format {}", about.format),
                "open it with the newer Farheap that made it");
  }
  if (about.block_bytes != block_bytes_) {
    return fail(ErrorCode::kInvalidArgument, kWhat, client_->place().describe(),
                fmt::format("it holds blocks of {} bytes, not of {}", about.block_bytes, block_bytes_),
                "open it with the block size it was made with");
  }
  return {};
}

Answer<std::optional<Row>> Space::read_about() {
  auto rows = client_->read(row_of(keys_.about()));
  if (!rows) return tl::unexpected(rows.error());
  if (rows->empty() || rows->front().find(kAbout) == nullptr) return std::optional<Row>();
  return std::optional(std::move(rows->front()));
}

Status Space::make_table_if_missing() {
  auto row = client_->read(row_of(keys_.about()));
  if (row) return {};
  if (row.error().error_code() != grpc::StatusCode::NOT_FOUND) return fail(client_->error(row.error(), kWhat));
  if (const auto made = client_->create_table(); !made.ok()) {
    return fail(client_->error(made, "cannot make the table"));
  }
  return {};
}

// A machine's clock may be wrong; the server's is the one that all agree on.
Status Space::look_at_clock() {
  const auto key = place_keys_.prefix + "t/clock";
  api::MutateRowRequest request;
  auto& older = *request.add_mutations()->mutable_delete_from_column();
  older.set_family_name(kFamily);
  older.set_column_qualifier(kClock);
  auto& cell = *request.add_mutations()->mutable_set_cell();
  cell.set_family_name(kFamily);
  cell.set_column_qualifier(kClock);
  cell.set_timestamp_micros(-1);  // the server's own
  const auto before = clock_.now();
  auto status = client_->mutate(key, request);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND || status.error_code() == grpc::StatusCode::INTERNAL) {
    if (const auto made = client_->create_table(); !made.ok()) {  // the table was there, its column family was not
      return fail(client_->error(made, "cannot make the table"));
    }
    status = client_->mutate(key, request);
  }
  if (!status.ok()) return fail(client_->error(status, kWhat));
  const auto after = clock_.now();
  const auto rows = client_->read(row_of(key));
  if (!rows) return fail(client_->error(rows.error(), kWhat));
  const auto* found = rows->empty() ? nullptr : rows->front().find(kClock);
  if (found == nullptr) return {};
  const auto ahead = found->time - static_cast<std::int64_t>(before / 2 + after / 2);
  const auto tolerance = std::chrono::microseconds(kClockTolerance).count() + static_cast<std::int64_t>(after - before);
  if (std::abs(ahead) > tolerance) clock_.set_ahead(ahead);
  return {};
}

api::ReadRowsRequest kept_rows(const Keys& name_keys) {
  api::ReadRowsRequest request;
  const auto add = [&](const std::string& from, const std::string& to) {
    auto& range = *request.mutable_rows()->add_row_ranges();
    range.set_start_key_closed(from);
    range.set_end_key_open(to);
  };
  const auto scratch = name_keys.prefix + "s/";
  add(name_keys.prefix, scratch);
  add(behind(scratch), name_keys.beats());
  add(behind(name_keys.beats()), behind(name_keys.prefix));
  return request;
}

Status Space::refuse_foreign_rows() {
  if (!kept_) return {};  // its prefix was drawn by chance
  auto request = kept_rows(place_keys_);
  request.set_rows_limit(1);
  auto rows = client_->read(request);
  if (!rows) return fail(client_->error(rows.error(), kWhat));
  if (rows->empty()) return {};
  // Another opener may have made it in between.
  const auto row = read_about();
  if (row && *row) return {};
  return fail(ErrorCode::kInvalidArgument, kWhat, client_->place().describe(),
              fmt::format("its part of the table has rows that are not Farheap's, such as '{}'", rows->front().key),
              "name another table, or another NAME behind it");
}

Status Space::still_there() {
  return health_.check([this] { return verify(); });
}

Status Space::verify() {
  const auto row = read_about();
  if (!row) {
    if (row.error().error_code() == grpc::StatusCode::NOT_FOUND) {
      return lost("the server lost the table, and all that was in it");
    }
    return fail(client_->error(row.error(), "cannot reach the store"));
  }
  const auto* cell = *row ? (*row)->find(kAbout) : nullptr;
  const auto about = cell != nullptr ? about_in(cell->value) : std::nullopt;
  if (!about) return lost("the server lost all that was in it");
  if (about->identity != identity_) return lost("the server lost it, and somebody has made a new one since");
  const auto* epoch = (*row)->find(kEpoch);
  const auto now = epoch != nullptr && epoch->value.size() == kVersionBytes ? number_in(epoch->value) : 0;
  if (now < epoch_) {
    return lost(fmt::format("the server went back to an older state (epoch {}, was {})", now, epoch_.load()));
  }
  epoch_ = now;
  return {};
}

}  // namespace farheap::engines::bigtable
