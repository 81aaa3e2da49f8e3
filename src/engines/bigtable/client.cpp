// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/bigtable/client.hpp"

namespace farheap::engines::bigtable {

namespace admin = google::bigtable::admin::v2;

namespace {

// Of rows that are read whole: what a store is, its beats, its counters. More is no answer to what was asked.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

grpc::Status too_long_an_answer() {
  return {grpc::StatusCode::DATA_LOSS, "the answer is longer than what was asked for"};
}

}  // namespace

api::ReadRowsRequest rows_with(const std::string& prefix) {
  api::ReadRowsRequest request;
  auto& range = *request.mutable_rows()->add_row_ranges();
  range.set_start_key_closed(prefix);
  range.set_end_key_open(behind(prefix));
  return request;
}

api::ReadRowsRequest row_of(const std::string& key) {
  api::ReadRowsRequest request;
  request.mutable_rows()->add_row_keys(key);
  request.mutable_filter()->set_cells_per_column_limit_filter(1);
  return request;
}

Result<std::unique_ptr<Client>> Client::open(const std::string& place, const store::Parameters& parameters,
                                             const StoreOptions& /*options*/) {
  auto where = google_place("bigtable", place, "TABLE");
  if (!where) return fail(std::move(where.error()));
  const auto patience = server_patience(parameters);
  if (!patience) return fail(patience.error());
  constexpr char kEmulator[] = "BIGTABLE_EMULATOR_HOST";
  const auto subject = where->describe();
  auto data = google_channel(kEmulator, "bigtable.googleapis.com", subject);
  if (!data) return fail(std::move(data.error()));
  auto tables = google_channel(kEmulator, "bigtableadmin.googleapis.com", subject);
  if (!tables) return fail(std::move(tables.error()));
  return std::make_unique<Client>(std::move(*where), parameters.word("app_profile", ""), *patience, *data,
                                  tables->channel);
}

Client::Client(GooglePlace place, std::string app_profile, ServerPatience patience, const GoogleChannel& data,
               const std::shared_ptr<grpc::Channel>& admin_channel)
    : ServerClient(place.describe(), patience, data.is_emulator, data.channel),
      place_(std::move(place)),
      table_path_(place_.instance_path() + "/tables/" + place_.table),
      app_profile_(std::move(app_profile)),
      data_(api::Bigtable::NewStub(data.channel)),
      admin_(admin::BigtableTableAdmin::NewStub(admin_channel)) {}

Answer<std::vector<Row>> Client::read(api::ReadRowsRequest request) {
  address(request);
  auto attempts = this->attempts();
  std::vector<Row> rows;
  const auto status = ask(attempts, [&](grpc::ClientContext& context) {
    RowsTaker taker;
    ChunkReader chunks(taker);
    auto stream = data_->ReadRows(&context, request);
    api::ReadRowsResponse response;
    std::size_t bytes = 0;
    while (bytes <= kMostBytes && stream->Read(&response)) {
      bytes += response.ByteSizeLong();
      chunks.take(response);
    }
    if (bytes > kMostBytes) context.TryCancel();
    rows = std::move(taker.rows());
    const auto finished = stream->Finish();
    return bytes > kMostBytes ? too_long_an_answer() : finished;
  });
  if (!status.ok()) return tl::unexpected(status);
  return rows;
}

grpc::Status Client::mutate(const std::string& key, api::MutateRowRequest request) {
  address(request);
  request.set_row_key(key);
  auto attempts = writing_attempts();
  return ask(attempts, [&](grpc::ClientContext& context) {
    api::MutateRowResponse response;
    return data_->MutateRow(&context, request, &response);
  });
}

Answer<Client::Checked> Client::check_and_mutate(api::CheckAndMutateRowRequest request) {
  address(request);
  auto attempts = writing_attempts();
  api::CheckAndMutateRowResponse response;
  const auto status = ask(
      attempts, [&](grpc::ClientContext& context) { return data_->CheckAndMutateRow(&context, request, &response); });
  if (!status.ok()) return tl::unexpected(status);
  return Checked{response.predicate_matched(), attempts.was_unclear()};
}

Answer<std::int64_t> Client::add(const std::string& key, std::string_view column, std::int64_t delta) {
  api::ReadModifyWriteRowRequest request;
  address(request);
  request.set_row_key(key);
  auto& rule = *request.add_rules();
  rule.set_family_name(kFamily);
  rule.set_column_qualifier(std::string(column));
  rule.set_increment_amount(delta);
  auto attempts = writing_attempts();
  for (;;) {
    grpc::ClientContext context;
    context.set_deadline(attempts.deadline());
    api::ReadModifyWriteRowResponse response;
    const auto status = data_->ReadModifyWriteRow(&context, request, &response);
    if (status.ok()) {
      for (const auto& family : response.row().families()) {
        for (const auto& found : family.columns()) {
          const bool is_number = found.cells_size() > 0 && found.cells(0).value().size() == sizeof(std::int64_t);
          if (is_number) return static_cast<std::int64_t>(number_in(found.cells(0).value()));
        }
      }
      return tl::unexpected(grpc::Status(grpc::StatusCode::DATA_LOSS, "the counter came back without its value"));
    }
    const bool is_unclear = reply_of(status) == Reply::kUnclear;
    if (is_unclear) watch()->doubt();
    if (is_unclear || !attempts.again(status)) return tl::unexpected(status);
  }
}

grpc::Status Client::delete_row(const std::string& key) {
  api::MutateRowRequest request;
  request.add_mutations()->mutable_delete_from_row();
  return mutate(key, std::move(request));
}

grpc::Status Client::drop_rows(const std::string& prefix) {
  admin::DropRowRangeRequest request;
  request.set_name(table_path_);
  request.set_row_key_prefix(prefix);
  auto attempts = this->attempts();
  return ask(attempts, [&](grpc::ClientContext& context) {
    google::protobuf::Empty response;
    return admin_->DropRowRange(&context, request, &response);
  });
}

grpc::Status Client::create_table() {
  admin::CreateTableRequest table;
  table.set_parent(place_.instance_path());
  table.set_table_id(place_.table);
  (*table.mutable_table()->mutable_column_families())[kFamily];
  auto attempts = this->attempts();
  auto created = ask(attempts, [&](grpc::ClientContext& context) {
    admin::Table response;
    return admin_->CreateTable(&context, table, &response);
  });
  if (created.error_code() != grpc::StatusCode::ALREADY_EXISTS) return created;
  admin::ModifyColumnFamiliesRequest family;
  family.set_name(table_path_);
  auto& change = *family.add_modifications();
  change.set_id(kFamily);
  change.mutable_create();
  const auto added = ask(attempts, [&](grpc::ClientContext& context) {
    admin::Table response;
    return admin_->ModifyColumnFamilies(&context, family, &response);
  });
  return added.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status() : added;
}

}  // namespace farheap::engines::bigtable
