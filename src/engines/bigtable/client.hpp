// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table of Bigtable, asked with patience. What needs many requests at once uses stub() itself.
//
// Thread-safety: any thread.
#pragma once

#include <google/bigtable/admin/v2/bigtable_table_admin.grpc.pb.h>
#include <google/bigtable/v2/bigtable.grpc.pb.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engines/bigtable/rows.hpp"
#include "engines/grpc/google_place.hpp"
#include "engines/grpc/server_client.hpp"

namespace farheap::engines::bigtable {

// Of rows that begin with `prefix`, or of one row.
[[nodiscard]] api::ReadRowsRequest rows_with(const std::string& prefix);
[[nodiscard]] api::ReadRowsRequest row_of(const std::string& key);

class Client final : public ServerClient {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Client>> open(const std::string& place, const store::Parameters&,
                                                            const StoreOptions&);
  Client(GooglePlace place, std::string app_profile, ServerPatience patience, GoogleChannel data,
         std::shared_ptr<grpc::Channel> admin);

  [[nodiscard]] const GooglePlace& place() const { return place_; }
  [[nodiscard]] api::Bigtable::Stub& stub() { return *data_; }

  // Every request names the table and the profile.
  template <class Request>
  void address(Request& request) const {
    request.set_table_name(table_path_);
    request.set_app_profile_id(app_profile_);
  }

  // ---- each asks again where that does no harm

  [[nodiscard]] Answer<std::vector<Row>> read(api::ReadRowsRequest request);
  // Every key of `request`, some thousands at a time, until `visit` says false.
  template <class Visit>
  [[nodiscard]] grpc::Status each_key(api::ReadRowsRequest request, Visit visit);
  // Requires: its cells have times of their own, so that doing it twice changes nothing.
  [[nodiscard]] grpc::Status mutate(const std::string& key, api::MutateRowRequest request);
  // Whether the predicate matched. With an unclear attempt before it, that may be by its own doing.
  struct Checked {
    bool matched = false;
    bool was_unclear = false;
  };
  [[nodiscard]] Answer<Checked> check_and_mutate(api::CheckAndMutateRowRequest request);
  // Once: adding twice does harm. Whether it was done can be unclear (reply_of()).
  [[nodiscard]] Answer<std::int64_t> add(const std::string& key, std::string_view column, std::int64_t delta);
  // Deletes the rows themselves, whatever the times of their cells.
  [[nodiscard]] grpc::Status delete_row(const std::string& key);
  [[nodiscard]] grpc::Status drop_rows(const std::string& prefix);
  // With its column family; one that is there is fine.
  [[nodiscard]] grpc::Status create_table();

 private:
  GooglePlace place_;
  std::string table_path_;
  std::string app_profile_;
  std::unique_ptr<api::Bigtable::Stub> data_;
  std::unique_ptr<google::bigtable::admin::v2::BigtableTableAdmin::Stub> admin_;
};

template <class Visit>
grpc::Status Client::each_key(api::ReadRowsRequest request, Visit visit) {
  constexpr std::int64_t kAtOnce = 4096;
  auto& filters = *request.mutable_filter()->mutable_chain();
  filters.add_filters()->set_cells_per_row_limit_filter(1);
  filters.add_filters()->set_strip_value_transformer(true);
  request.set_rows_limit(kAtOnce);
  for (;;) {
    auto rows = read(request);
    if (!rows) return rows.error();
    std::vector<std::string> keys;
    keys.reserve(rows->size());
    for (auto& row : *rows) keys.push_back(std::move(row.key));
    if (!keys.empty() && !visit(std::span<const std::string>(keys))) return {};
    if (std::ssize(keys) < kAtOnce) return {};
    for (auto& range : *request.mutable_rows()->mutable_row_ranges()) range.set_start_key_open(keys.back());
  }
}

}  // namespace farheap::engines::bigtable
