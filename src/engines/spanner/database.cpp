// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <google/longrunning/operations.grpc.pb.h>
#include <google/spanner/admin/database/v1/spanner_database_admin.grpc.pb.h>
#include <google/spanner/admin/instance/v1/spanner_instance_admin.grpc.pb.h>

#include <thread>

#include "engines/spanner/client.hpp"

namespace farheap::engines::spanner {
namespace {

namespace databases = google::spanner::admin::database::v1;
namespace instances = google::spanner::admin::instance::v1;
using google::longrunning::Operation;

class Admin {
 public:
  Admin(Client& client, const std::shared_ptr<grpc::Channel>& channel)
      : client_(client),
        databases_(databases::DatabaseAdmin::NewStub(channel)),
        instances_(instances::InstanceAdmin::NewStub(channel)),
        operations_(google::longrunning::Operations::NewStub(channel)) {}

  grpc::Status make_instance() {
    instances::CreateInstanceRequest request;
    request.set_parent("projects/" + client_.place().project);
    request.set_instance_id(client_.place().instance);
    auto& instance = *request.mutable_instance();
    instance.set_name(client_.place().instance_path());
    instance.set_config(request.parent() + "/instanceConfigs/emulator-config");
    instance.set_display_name(client_.place().instance);
    instance.set_node_count(1);
    return carry_out([&](grpc::ClientContext& context, Operation& operation) {
      return instances_->CreateInstance(&context, request, &operation);
    });
  }

  grpc::Status make_database() {
    databases::CreateDatabaseRequest request;
    request.set_parent(client_.place().instance_path());
    request.set_create_statement("CREATE DATABASE `" + client_.place().table + "`");
    for (const auto& definition : table_definitions()) request.add_extra_statements(definition);
    return carry_out([&](grpc::ClientContext& context, Operation& operation) {
      return databases_->CreateDatabase(&context, request, &operation);
    });
  }

  grpc::Status make_tables() {
    databases::UpdateDatabaseDdlRequest request;
    request.set_database(client_.database_path());
    for (const auto& definition : table_definitions()) request.add_statements(definition);
    return carry_out([&](grpc::ClientContext& context, Operation& operation) {
      return databases_->UpdateDatabaseDdl(&context, request, &operation);
    });
  }

 private:
  // Begins something that takes its time, and waits for it. That it is there already is fine.
  template <class Begin>
  grpc::Status carry_out(Begin begin) {
    Operation operation;
    auto attempts = client_.attempts();
    auto status = ask(attempts, [&](grpc::ClientContext& context) { return begin(context, operation); });
    while (status.ok() && !operation.done()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      google::longrunning::GetOperationRequest request;
      request.set_name(operation.name());
      status = ask(attempts, [&](grpc::ClientContext& context) {
        return operations_->GetOperation(&context, request, &operation);
      });
    }
    if (status.ok() && operation.has_error()) {
      status = {static_cast<grpc::StatusCode>(operation.error().code()), operation.error().message()};
    }
    return status.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status() : status;
  }

  Client& client_;
  std::unique_ptr<databases::DatabaseAdmin::Stub> databases_;
  std::unique_ptr<instances::InstanceAdmin::Stub> instances_;
  std::unique_ptr<google::longrunning::Operations::Stub> operations_;
};

bool is_missing(const grpc::Status& status) { return status.error_code() == grpc::StatusCode::NOT_FOUND; }

}  // namespace

Status make_database(Client& client) {
  const auto channel = google_channel("SPANNER_EMULATOR_HOST", "spanner.googleapis.com", client.place().describe());
  if (!channel) return fail(channel.error());
  Admin admin(client, channel->channel);
  auto made = admin.make_tables();
  if (is_missing(made)) made = admin.make_database();
  if (is_missing(made) && client.is_emulator()) {
    made = admin.make_instance();
    if (made.ok()) made = admin.make_database();
  }
  if (!made.ok()) return fail(client.error(made, "cannot make the database"));
  return {};
}

}  // namespace farheap::engines::spanner
