// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Spanner's own stubs: a row for each page, Commit of 256 mutations in a transaction of its own and StreamingRead of a
// range of 256, in a table of its own. Bytes travel as base64, which is the API's way.
// The emulator runs one transaction at a time and refuses others meanwhile, so commits do not overlap; reads do.
#include <google/longrunning/operations.grpc.pb.h>
#include <google/spanner/admin/database/v1/spanner_database_admin.grpc.pb.h>
#include <google/spanner/admin/instance/v1/spanner_instance_admin.grpc.pb.h>
#include <google/spanner/v1/spanner.grpc.pb.h>
#include <openssl/evp.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "stores/own_grpc.hpp"

namespace farheap::bench {
namespace {

namespace api = google::spanner::v1;
namespace databases = google::spanner::admin::database::v1;
namespace instances = google::spanner::admin::instance::v1;
using google::longrunning::Operation;

constexpr char kProject[] = "projects/own";
constexpr char kInstance[] = "projects/own/instances/own";
constexpr char kDatabase[] = "projects/own/instances/own/databases/own";
constexpr std::size_t kReadsUnderWay = 4;
constexpr std::size_t kTextOfAPage = (kPage + 2) / 3 * 4;

unsigned char* as_unsigned(char* text) { return reinterpret_cast<unsigned char*>(text); }
const unsigned char* as_unsigned(const char* text) { return reinterpret_cast<const unsigned char*>(text); }

void set_page(google::protobuf::Value& value, const char* bytes) {
  std::string& text = *value.mutable_string_value();
  text.resize(kTextOfAPage + 1);
  text.resize(static_cast<std::size_t>(EVP_EncodeBlock(as_unsigned(text.data()), as_unsigned(bytes), kPage)));
}

// The pages of a range of rows come in order; one may be cut between two answers.
struct Window {
  char* to;
  std::size_t left;
  std::string begun;
  bool is_whole = true;
  void take_page(const std::string& text) {
    char page[kTextOfAPage / 4 * 3];
    is_whole = is_whole && left > 0 && text.size() == kTextOfAPage &&
               EVP_DecodeBlock(as_unsigned(page), as_unsigned(text.data()), kTextOfAPage) > 0;
    if (!is_whole) return;
    std::memcpy(to, page, kPage);
    to += kPage;
    --left;
  }
  void take(const api::PartialResultSet& answer) {
    for (int i = 0; i < answer.values_size(); ++i) {
      const auto& text = answer.values(i).string_value();
      const bool is_cut = answer.chunked_value() && i + 1 == answer.values_size();
      if (begun.empty() && !is_cut) {
        take_page(text);
        continue;
      }
      begun += text;
      if (!is_cut) take_page(std::exchange(begun, {}));
    }
  }
};

class Spanner final : public RpcClient {
 public:
  explicit Spanner(const std::string& place)
      : RpcClient(
            "spanner",
            {.pages_a_write = 256, .pages_a_read = 256, .writes_under_way = 1, .reads_under_way = kReadsUnderWay}),
        channel_(rpc_channel(place)),
        stub_(api::Spanner::NewStub(channel_)) {}
  ~Spanner() override {
    databases::DropDatabaseRequest request;
    request.set_database(kDatabase);
    google::protobuf::Empty gone;
    const auto admin = databases::DatabaseAdmin::NewStub(channel_);
    (void)settle("deleting the database", [&](auto* context) { return admin->DropDatabase(context, request, &gone); });
  }

  bool make_database() {
    instances::CreateInstanceRequest place;
    place.set_parent(kProject);
    place.set_instance_id("own");
    place.mutable_instance()->set_name(kInstance);
    place.mutable_instance()->set_config(std::string(kProject) + "/instanceConfigs/emulator-config");
    place.mutable_instance()->set_display_name("own");
    place.mutable_instance()->set_node_count(1);
    const auto admin = instances::InstanceAdmin::NewStub(channel_);
    Operation made;
    if (!carried_out("making the instance", made, [&](auto* context) {
          auto status = admin->CreateInstance(context, place, &made);
          if (status.error_code() != grpc::StatusCode::ALREADY_EXISTS) return status;
          made.set_done(true);  // of the round before
          return grpc::Status();
        })) {
      return false;
    }
    databases::CreateDatabaseRequest database;
    database.set_parent(kInstance);
    database.set_create_statement("CREATE DATABASE `own`");
    database.add_extra_statements("CREATE TABLE Pages (Number INT64 NOT NULL, Page BYTES(MAX)) PRIMARY KEY (Number)");
    const auto databases_admin = databases::DatabaseAdmin::NewStub(channel_);
    return carried_out("making the database", made,
                       [&](auto* context) { return databases_admin->CreateDatabase(context, database, &made); }) &&
           make_sessions();
  }

 private:
  template <class Ask>
  bool carried_out(const char* what, Operation& operation, Ask ask) {
    if (!settle(what, ask)) return false;
    const auto operations = google::longrunning::Operations::NewStub(channel_);
    while (!operation.done()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      google::longrunning::GetOperationRequest request;
      request.set_name(operation.name());
      const auto look = [&](auto* context) { return operations->GetOperation(context, request, &operation); };
      if (!settle(what, look)) return false;
    }
    return said(what, {static_cast<grpc::StatusCode>(operation.error().code()), operation.error().message()});
  }

  bool make_sessions() {
    for (std::size_t i = 0; i < kReadsUnderWay; ++i) {
      api::CreateSessionRequest request;
      request.set_database(kDatabase);
      api::Session session;
      if (!settle("a session", [&](auto* context) { return stub_->CreateSession(context, request, &session); })) {
        return false;
      }
      sessions_.push_back(session.name());
    }
    return true;
  }
  const std::string& next_session() { return sessions_[turn_++ % sessions_.size()]; }

  void begin_write(std::uint64_t first, std::size_t count, const char* bytes) override {
    api::CommitRequest request;
    request.set_session(sessions_[0]);
    request.mutable_single_use_transaction()->mutable_read_write();
    auto& write = *request.add_mutations()->mutable_insert_or_update();
    write.set_table("Pages");
    write.add_columns("Number");
    write.add_columns("Page");
    for (std::size_t i = 0; i < count; ++i) {
      auto& row = *write.add_values();
      row.add_values()->set_string_value(std::to_string(first + i));
      set_page(*row.add_values(), bytes + i * kPage);
    }
    call<api::CommitResponse>([&](auto* context, auto* queue) { return stub_->AsyncCommit(context, request, queue); },
                              [](const api::CommitResponse&) { return true; });
  }

  void begin_read(std::uint64_t first, std::size_t count, char* into) override {
    api::ReadRequest request;
    request.set_session(next_session());
    request.set_table("Pages");
    request.add_columns("Page");
    if (count == 1) {
      request.mutable_key_set()->add_keys()->add_values()->set_string_value(std::to_string(first));
    } else {
      auto& range = *request.mutable_key_set()->add_ranges();
      range.mutable_start_closed()->add_values()->set_string_value(std::to_string(first));
      range.mutable_end_open()->add_values()->set_string_value(std::to_string(first + count));
    }
    auto window = std::make_shared<Window>(Window{.to = into, .left = count, .begun = {}});
    stream<api::PartialResultSet>(
        [&](auto* context, auto* queue, void* tag) { return stub_->AsyncStreamingRead(context, request, queue, tag); },
        [window](const api::PartialResultSet& answer) { window->take(answer); },
        [window] { return window->is_whole && window->left == 0; });
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<api::Spanner::Stub> stub_;
  std::vector<std::string> sessions_;
  std::size_t turn_ = 0;
};

}  // namespace

std::unique_ptr<OwnClient> own_spanner(const std::string& place) {
  auto client = std::make_unique<Spanner>(place);
  return client->make_database() ? std::move(client) : nullptr;
}

}  // namespace farheap::bench
