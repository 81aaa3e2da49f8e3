// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bigtable's own stubs: a row for each page, MutateRows of 256 rows and ReadRows of a range of 256, in a table of its
// own.
#include <google/bigtable/admin/v2/bigtable_table_admin.grpc.pb.h>
#include <google/bigtable/v2/bigtable.grpc.pb.h>

#include <algorithm>
#include <cstring>

#include "stores/own_grpc.hpp"

namespace farheap::bench {
namespace {

namespace api = google::bigtable::v2;
namespace admin = google::bigtable::admin::v2;

constexpr char kInstance[] = "projects/own/instances/own";
constexpr char kTable[] = "projects/own/instances/own/tables/own";
constexpr char kFamily[] = "f";
constexpr std::int64_t kTime = 1000;  // always the same: a page that is written again takes the place of the old one

// The cells of a range of rows come in order, each in one piece or more.
struct Window {
  char* to;
  std::size_t left;
  bool is_whole = true;
  void take(const api::ReadRowsResponse& response) {
    for (const auto& chunk : response.chunks()) {
      const auto bytes = std::min(chunk.value().size(), left);
      is_whole = is_whole && bytes == chunk.value().size() && !chunk.reset_row();
      std::memcpy(to, chunk.value().data(), bytes);
      to += bytes;
      left -= bytes;
    }
  }
};

class Bigtable final : public RpcClient {
 public:
  explicit Bigtable(const std::string& place)
      : RpcClient("bigtable", {.pages_a_write = 256, .pages_a_read = 256}),
        channel_(rpc_channel(place)),
        stub_(api::Bigtable::NewStub(channel_)),
        admin_(admin::BigtableTableAdmin::NewStub(channel_)) {}
  ~Bigtable() override {
    admin::DeleteTableRequest request;
    request.set_name(kTable);
    google::protobuf::Empty gone;
    (void)settle("deleting the table", [&](auto* context) { return admin_->DeleteTable(context, request, &gone); });
  }
  bool make_table() {
    admin::CreateTableRequest request;
    request.set_parent(kInstance);
    request.set_table_id("own");
    (*request.mutable_table()->mutable_column_families())[kFamily];
    admin::Table made;
    return settle("making the table", [&](auto* context) { return admin_->CreateTable(context, request, &made); });
  }

 private:
  void begin_write(std::uint64_t first, std::size_t count, const char* bytes) override {
    api::MutateRowsRequest request;
    request.set_table_name(kTable);
    for (std::size_t i = 0; i < count; ++i) {
      auto& row = *request.add_entries();
      row.set_row_key(ordered_key(first + i));
      auto& cell = *row.add_mutations()->mutable_set_cell();
      cell.set_family_name(kFamily);
      cell.set_column_qualifier("p");
      cell.set_timestamp_micros(kTime);
      cell.set_value(bytes + i * kPage, kPage);
    }
    auto written = std::make_shared<std::size_t>(0);
    stream<api::MutateRowsResponse>(
        [&](auto* context, auto* queue, void* tag) { return stub_->AsyncMutateRows(context, request, queue, tag); },
        [written](const api::MutateRowsResponse& response) {
          for (const auto& entry : response.entries()) *written += entry.status().code() == 0 ? 1 : 0;
        },
        [written, count] { return *written == count; });
  }

  void begin_read(std::uint64_t first, std::size_t count, char* into) override {
    api::ReadRowsRequest request;
    request.set_table_name(kTable);
    if (count == 1) {
      request.mutable_rows()->add_row_keys(ordered_key(first));
    } else {
      auto& range = *request.mutable_rows()->add_row_ranges();
      range.set_start_key_closed(ordered_key(first));
      range.set_end_key_open(ordered_key(first + count));
    }
    auto window = std::make_shared<Window>(Window{.to = into, .left = count * kPage});
    stream<api::ReadRowsResponse>(
        [&](auto* context, auto* queue, void* tag) { return stub_->AsyncReadRows(context, request, queue, tag); },
        [window](const api::ReadRowsResponse& response) { window->take(response); },
        [window] { return window->is_whole && window->left == 0; });
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<api::Bigtable::Stub> stub_;
  std::unique_ptr<admin::BigtableTableAdmin::Stub> admin_;
};

}  // namespace

std::unique_ptr<OwnClient> own_bigtable(const std::string& place) {
  auto client = std::make_unique<Bigtable>(place);
  return client->make_table() ? std::move(client) : nullptr;
}

}  // namespace farheap::bench
