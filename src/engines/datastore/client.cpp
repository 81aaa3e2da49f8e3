// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/datastore/client.hpp"

#include <fmt/format.h>

namespace farheap::engines::datastore {
namespace {

constexpr char kNamespace[] = "farheap";
constexpr char kKeyProperty[] = "__key__";
constexpr std::size_t kLongestName = 128;
constexpr int kMutations = 400;  // of one commit; Datastore takes 500

bool is_in_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}
bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_in_names);
}

api::Value& property_of(api::Entity& entity, const char* property) {
  auto& value = (*entity.mutable_properties())[property];
  value.set_exclude_from_indexes(true);
  return value;
}

const api::Value& value_in(const api::Entity& entity, const char* property) {
  const auto found = entity.properties().find(property);
  return found != entity.properties().end() ? found->second : api::Value::default_instance();
}

}  // namespace

Result<Place> datastore_place(std::string_view text) {
  const auto wrong = [&](std::string why) {
    return fail(ErrorCode::kInvalidArgument, "not a store", fmt::format("datastore:{}", text), std::move(why),
                "write it as datastore://PROJECT or datastore://PROJECT/NAME");
  };
  if (!text.starts_with("//")) return wrong("the project is missing");
  const auto rest = text.substr(2);
  const auto slash = std::min(rest.find('/'), rest.size());
  Place place{std::string(rest.substr(0, slash)), std::string(rest.substr(std::min(slash + 1, rest.size())))};
  for (const auto& part : {place.project, place.name}) {
    if (is_name(part) || (part.empty() && !place.project.empty())) continue;
    return wrong(fmt::format("'{}' is no name (letters, digits, and any of - _ ., at most {})", part, kLongestName));
  }
  return place;
}

void set_text(api::Entity& entity, const char* property, std::string value) {
  property_of(entity, property).set_string_value(std::move(value));
}
void set_blob(api::Entity& entity, const char* property, std::string value) {
  property_of(entity, property).set_blob_value(std::move(value));
}
void set_number(api::Entity& entity, const char* property, std::uint64_t value) {
  property_of(entity, property).set_integer_value(static_cast<std::int64_t>(value));
}
const std::string& text_in(const api::Entity& entity, const char* property) {
  return value_in(entity, property).string_value();
}
const std::string& blob_in(const api::Entity& entity, const char* property) {
  return value_in(entity, property).blob_value();
}
std::uint64_t number_in(const api::Entity& entity, const char* property) {
  return static_cast<std::uint64_t>(value_in(entity, property).integer_value());
}

// ---- Client

Result<std::unique_ptr<Client>> Client::open(const std::string& place, const store::Parameters& parameters,
                                             const StoreOptions& /*options*/) {
  auto where = datastore_place(place);
  if (!where) return fail(std::move(where.error()));
  const auto patience = server_patience(parameters);
  if (!patience) return fail(patience.error());
  auto channel = google_channel("DATASTORE_EMULATOR_HOST", "datastore.googleapis.com", where->describe());
  if (!channel) return fail(std::move(channel.error()));
  return std::unique_ptr<Client>(new Client(std::move(*where), *patience, *channel));
}

void Client::set_key(api::Key& key, const char* kind, const std::string& name) const {
  key.mutable_partition_id()->set_project_id(place_.project);
  key.mutable_partition_id()->set_namespace_id(kNamespace);
  auto& element = *key.add_path();
  element.set_kind(kind);
  element.set_name(name);
}

api::Query Client::names_between(const char* kind, const std::string& from, const std::string& to) const {
  api::Query query;
  query.add_kind()->set_name(kind);
  auto& both = *query.mutable_filter()->mutable_composite_filter();
  both.set_op(api::CompositeFilter::AND);
  const auto add = [&](api::PropertyFilter::Operator is, const std::string& name) {
    auto& filter = *both.add_filters()->mutable_property_filter();
    filter.mutable_property()->set_name(kKeyProperty);
    filter.set_op(is);
    set_key(*filter.mutable_value()->mutable_key_value(), kind, name);
  };
  add(api::PropertyFilter::GREATER_THAN_OR_EQUAL, from);
  add(api::PropertyFilter::LESS_THAN, to);
  auto& order = *query.add_order();
  order.mutable_property()->set_name(kKeyProperty);
  order.set_direction(api::PropertyOrder::ASCENDING);
  return query;
}

Answer<std::vector<api::Entity>> Client::query(api::Query query, bool keys_only, int limit) {
  if (keys_only) query.add_projection()->mutable_property()->set_name(kKeyProperty);
  query.mutable_limit()->set_value(limit);
  std::vector<api::Entity> found;
  for (;;) {
    api::RunQueryRequest request;
    request.set_project_id(place_.project);
    request.mutable_partition_id()->set_project_id(place_.project);
    request.mutable_partition_id()->set_namespace_id(kNamespace);
    *request.mutable_query() = query;
    api::RunQueryResponse response;
    auto attempts = this->attempts();
    const auto status = ask(attempts, [&](grpc::ClientContext& context) {
      response.Clear();
      return stub_->RunQuery(&context, request, &response);
    });
    if (!status.ok()) return tl::unexpected(status);
    for (auto& result : *response.mutable_batch()->mutable_entity_results()) {
      found.push_back(std::move(*result.mutable_entity()));
    }
    // An answer may be shorter than it could be.
    if (response.batch().more_results() != api::QueryResultBatch::NOT_FINISHED) return found;
    query.set_start_cursor(response.batch().end_cursor());
    query.mutable_limit()->set_value(limit - static_cast<int>(found.size()));
  }
}

Answer<api::LookupResponse> Client::lookup(const api::LookupRequest& request) {
  api::LookupResponse response;
  auto attempts = this->attempts();
  const auto status = ask(attempts, [&](grpc::ClientContext& context) {
    response.Clear();
    return stub_->Lookup(&context, request, &response);
  });
  if (!status.ok()) return tl::unexpected(status);
  return response;
}

Answer<std::unique_ptr<api::Entity>> Client::find(const char* kind, const std::string& name) {
  api::LookupRequest request;
  request.set_project_id(place_.project);
  set_key(*request.add_keys(), kind, name);
  auto response = lookup(request);
  if (!response) return tl::unexpected(response.error());
  if (response->found_size() == 0) return nullptr;
  return std::make_unique<api::Entity>(std::move(*response->mutable_found(0)->mutable_entity()));
}

grpc::Status Client::mutate(const std::vector<api::Mutation>& mutations) {
  api::CommitRequest request;
  request.set_project_id(place_.project);
  request.set_mode(api::CommitRequest::NON_TRANSACTIONAL);
  request.mutable_mutations()->Assign(mutations.begin(), mutations.end());
  api::CommitResponse response;
  auto attempts = this->attempts();
  return ask(attempts, [&](grpc::ClientContext& context) { return stub_->Commit(&context, request, &response); });
}

grpc::Status Client::remove_between(const char* kind, const std::string& from, const std::string& to) {
  for (;;) {
    auto found = query(names_between(kind, from, to), true, kMutations);
    if (!found) return found.error();
    if (found->empty()) return {};
    std::vector<api::Mutation> mutations(found->size());
    for (std::size_t i = 0; i < found->size(); ++i) *mutations[i].mutable_delete_() = (*found)[i].key();
    if (const auto status = mutate(mutations); !status.ok()) return status;
  }
}

api::BeginTransactionRequest Client::begin_request() const {
  api::BeginTransactionRequest request;
  request.set_project_id(place_.project);
  request.mutable_transaction_options()->mutable_read_write();
  return request;
}

Answer<std::string> Client::begin() {
  api::BeginTransactionResponse response;
  auto attempts = this->attempts();
  const auto status = ask(attempts, [&](grpc::ClientContext& context) {
    return stub_->BeginTransaction(&context, begin_request(), &response);
  });
  if (!status.ok()) return tl::unexpected(status);
  return response.transaction();
}

grpc::Status Client::close(const std::string& transaction, Attempts& attempts) {
  api::RollbackRequest request;
  request.set_project_id(place_.project);
  request.set_transaction(transaction);
  api::RollbackResponse response;
  const auto status =
      ask(attempts, [&](grpc::ClientContext& context) { return stub_->Rollback(&context, request, &response); });
  // One that is closed already is what was wanted.
  return reply_of(status) == Reply::kRefused ? grpc::Status() : status;
}

}  // namespace farheap::engines::datastore
