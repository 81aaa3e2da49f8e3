// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Datastore's own stubs: an entity for each page, whose bytes are not indexed; Commit of 256 upserts without a
// transaction, and Lookup of 256 keys.
#include <google/datastore/v1/datastore.grpc.pb.h>

#include <cstring>

#include "stores/own_grpc.hpp"

namespace farheap::bench {
namespace {

namespace api = google::datastore::v1;

constexpr char kProject[] = "project";  // Farheap's: a project of an emulator may cost it memory
constexpr char kNamespace[] = "own";
constexpr std::size_t kPagesARequest = 256;  // 500 is the limit of a commit

void set_key(api::Key& key, std::uint64_t page) {
  key.mutable_partition_id()->set_project_id(kProject);
  key.mutable_partition_id()->set_namespace_id(kNamespace);
  auto& element = *key.add_path();
  element.set_kind("page");
  element.set_id(static_cast<std::int64_t>(page) + 1);  // 0 is no id
}

class Datastore final : public RpcClient {
 public:
  explicit Datastore(const std::string& place)
      : RpcClient("datastore", {.pages_a_write = kPagesARequest, .pages_a_read = kPagesARequest}),
        stub_(api::Datastore::NewStub(rpc_channel(place))) {}
  ~Datastore() override {
    for (std::uint64_t first = 0; first < end_; first += kPagesARequest) {
      auto request = commit();
      for (std::size_t i = 0; i < kPagesARequest; ++i) set_key(*request.add_mutations()->mutable_delete_(), first + i);
      api::CommitResponse gone;
      if (!settle("deleting", [&](auto* context) { return stub_->Commit(context, request, &gone); })) return;
    }
  }

 private:
  static api::CommitRequest commit() {
    api::CommitRequest request;
    request.set_project_id(kProject);
    request.set_mode(api::CommitRequest::NON_TRANSACTIONAL);
    return request;
  }

  void begin_write(std::uint64_t first, std::size_t count, const char* bytes) override {
    end_ = std::max(end_, first + count);
    auto request = commit();
    for (std::size_t i = 0; i < count; ++i) {
      auto& entity = *request.add_mutations()->mutable_upsert();
      set_key(*entity.mutable_key(), first + i);
      auto& value = (*entity.mutable_properties())["d"];
      value.set_exclude_from_indexes(true);
      value.set_blob_value(bytes + i * kPage, kPage);
    }
    call<api::CommitResponse>([&](auto* context, auto* queue) { return stub_->AsyncCommit(context, request, queue); },
                              [count](const api::CommitResponse& response) {
                                return response.mutation_results_size() == static_cast<int>(count);
                              });
  }

  void begin_read(std::uint64_t first, std::size_t count, char* into) override {
    api::LookupRequest request;
    request.set_project_id(kProject);
    for (std::size_t i = 0; i < count; ++i) set_key(*request.add_keys(), first + i);
    call<api::LookupResponse>([&](auto* context, auto* queue) { return stub_->AsyncLookup(context, request, queue); },
                              [first, count, into](const api::LookupResponse& response) {
                                for (const auto& found : response.found()) {  // in any order
                                  const auto& entity = found.entity();
                                  const auto& bytes = entity.properties().at("d").blob_value();
                                  const auto page = static_cast<std::uint64_t>(entity.key().path(0).id()) - 1 - first;
                                  if (bytes.size() != kPage || page >= count) return false;
                                  std::memcpy(into + page * kPage, bytes.data(), kPage);
                                }
                                return response.found_size() == static_cast<int>(count);
                              });
  }

  std::unique_ptr<api::Datastore::Stub> stub_;
  std::uint64_t end_ = 0;
};

}  // namespace

std::unique_ptr<OwnClient> own_datastore(const std::string& place) { return std::make_unique<Datastore>(place); }

}  // namespace farheap::bench
