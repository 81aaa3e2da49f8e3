// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/datastore/space.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/random_number.hpp"
#include "engines/grpc/streams.hpp"
#include "engines/space/lost_races.hpp"

namespace farheap::engines::datastore {
namespace {

constexpr std::size_t kRemovalsInFlight = 4;

// The commit found another version than the one it was to write over.
bool has_changed(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
         status.error_code() == grpc::StatusCode::ALREADY_EXISTS;
}

}  // namespace

api::Entity& over(const api::EntityResult* found, api::Mutation& mutation) {
  if (found == nullptr) return *mutation.mutable_insert();
  mutation.set_base_version(found->version());
  mutation.set_conflict_resolution_strategy(api::Mutation::FAIL);
  return *mutation.mutable_update();
}

std::string escaped(std::string_view name) {
  std::string all;
  for (const char c : name) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
    all += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return all;
}

std::string unescaped(std::string_view name) {
  std::string all;
  while (!name.empty()) {
    const std::size_t length = name.front() == '%' ? 3 : 1;
    const auto one = std::string(name.substr(0, length));
    all += length == 1 ? one.front() : static_cast<char>(std::strtoul(one.c_str() + 1, nullptr, 16));
    name.remove_prefix(std::min(length, name.size()));
  }
  return all;
}

Space::Space(std::unique_ptr<Client> client, std::unique_ptr<Stores> stores, const StoreOptions& options)
    : ServerSpace(*client, *stores, options),
      client_(std::move(client)),
      stores_(std::move(stores)),
      store_(entity_name(key())),
      handle_(fmt::format("{:016x}", base::random_number())),
      version_(base::random_number()) {}

Result<std::unique_ptr<Space>> Space::open(std::unique_ptr<Client> client, const StoreOptions& options) {
  auto stores = std::make_unique<Stores>(*client);
  std::unique_ptr<Space> space(new Space(std::move(client), std::move(stores), options));
  if (auto ok = space->enter(); !ok) return fail(std::move(ok.error()));
  return space;
}

Space::~Space() {
  if (!leave()) return;
  if (!is_kept()) {
    (void)remove_entities(*client_, store_);
  } else if (slots_.any_used()) {
    (void)client_->remove_between(kSlotKind, prefix() + handle_ + "/", prefix() + handle_ + "0");
  }
}

Version Space::next_version() {
  const auto version = version_++;
  return version != 0 ? version : version_++;
}

api::Entity Space::description(const About& about) const {
  api::Entity entity;
  client_->set_key(*entity.mutable_key(), kStoreKind, store_);
  set_text(entity, kAbout, about_text(about));
  if (!is_kept()) set_number(entity, kBeat, now_us());
  return entity;
}

grpc::Status Space::make(const About& about) {
  api::Mutation make;
  *make.mutable_insert() = description(about);
  const auto made = client_->mutate({make});
  return made.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status() : made;
}

void Space::beat() {
  api::Mutation mutation;
  *mutation.mutable_upsert() = description(about());
  (void)write({{mutation}});  // a server that cannot be reached is for the calls to tell
}

// ---- requests

api::LookupRequest Space::look() const {
  api::LookupRequest request;
  request.set_project_id(client_->place().project);
  client_->set_key(*request.add_keys(), kStoreKind, store_);
  return request;
}

bool Space::believe_answer(api::LookupResponse& response) {
  auto& found = *response.mutable_found();
  const auto own = std::ranges::find_if(
      found, [&](const api::EntityResult& result) { return result.entity().key().path(0).kind() == kStoreKind; });
  const bool is_there = own != found.end();
  (void)believe(is_there ? std::optional(found_in(own->entity())) : std::nullopt);
  if (is_there) found.erase(own);
  return !is_lost();
}

Space::Writes Space::write(std::vector<std::vector<api::Mutation>> commits) {
  Writes end{.status = {}, .was_unclear = false, .done = std::vector<bool>(commits.size())};
  std::vector<std::size_t> pending(commits.size());
  for (std::size_t i = 0; i < commits.size(); ++i) pending[i] = i;
  auto attempts = client_->attempts();
  while (!pending.empty() && !is_lost()) {
    auto about = client_->lookup(look());
    if (!about) {
      end.status = about.error();
      break;
    }
    if (!believe_answer(*about)) break;
    std::vector<api::BeginTransactionResponse> begun(pending.size());
    const auto begin = client_->begin_request();
    auto statuses = run_calls(begun, kRemovalsInFlight, attempts.deadline(),
                              [&](std::size_t, grpc::ClientContext& context, grpc::CompletionQueue* queue) {
                                return client_->stub().AsyncBeginTransaction(&context, begin, queue);
                              });
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (statuses[i].ok()) ready.push_back(i);
    }
    std::vector<api::CommitResponse> answers(ready.size());
    api::CommitRequest request;
    const auto committed = run_calls(answers, kRemovalsInFlight, attempts.deadline(),
                                     [&](std::size_t i, grpc::ClientContext& context, grpc::CompletionQueue* queue) {
                                       const auto& mutations = commits[pending[ready[i]]];
                                       request.Clear();
                                       request.set_project_id(client_->place().project);
                                       request.set_mode(api::CommitRequest::TRANSACTIONAL);
                                       request.set_transaction(begun[ready[i]].transaction());
                                       request.mutable_mutations()->Assign(mutations.begin(), mutations.end());
                                       return client_->stub().AsyncCommit(&context, request, queue);
                                     });
    for (std::size_t i = 0; i < ready.size(); ++i) statuses[ready[i]] = committed[i];
    end.status = {};
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      end.done[pending[i]] = statuses[i].ok();
      if (end.done[pending[i]]) continue;
      left.push_back(pending[i]);
      if (end.status.ok() || reply_of(statuses[i]) == Reply::kRefused) end.status = statuses[i];
      const bool unclear = reply_of(statuses[i]) == Reply::kUnclear && !begun[i].transaction().empty();
      if (unclear && !client_->close(begun[i].transaction(), attempts).ok()) end.was_unclear = true;
    }
    pending = std::move(left);
    if (pending.empty()) break;
    if (end.was_unclear || !attempts.again(end.status)) break;
  }
  return end;
}

grpc::Status Space::commit(const std::string& transaction, std::vector<api::Mutation> mutations, Attempts& attempts) {
  api::CommitRequest request;
  request.set_project_id(client_->place().project);
  request.set_mode(api::CommitRequest::TRANSACTIONAL);
  request.set_transaction(transaction);
  for (auto& mutation : mutations) *request.add_mutations() = std::move(mutation);
  api::CommitResponse response;
  grpc::ClientContext context;
  context.set_deadline(attempts.deadline());
  return client_->stub().Commit(&context, request, &response);
}

Answer<bool> Space::once(const std::vector<api::Key>& keys, const Decide& decide) {
  const StampSlots::Had slot(slots_);
  const auto slot_name = fmt::format("{}{}/{}", prefix(), handle_, slot.number());
  const auto stamp = next_version();
  auto request = look();
  client_->set_key(*request.add_keys(), kSlotKind, slot_name);
  for (const auto& key : keys) *request.add_keys() = key;
  auto attempts = client_->attempts();
  Answer<bool> answer = tl::unexpected(grpc::Status(grpc::StatusCode::UNKNOWN, "no answer came"));
  unsigned lost_races = 0;
  for (bool unclear = false;;) {
    auto found = client_->lookup(request);
    if (!found) {
      if (!unclear) answer = tl::unexpected(found.error());
      break;
    }
    if (!believe_answer(*found)) break;
    bool by_lost_answer = false;
    for (const auto& result : found->found()) {
      const bool is_slot = result.entity().key().path(0).kind() == kSlotKind;
      by_lost_answer = by_lost_answer || (is_slot && unclear && number_in(result.entity(), kVersion) == stamp);
    }
    auto mutations = by_lost_answer ? std::vector<api::Mutation>() : decide(*found);
    if (mutations.empty()) {
      answer = by_lost_answer;
      break;
    }
    const auto transaction = client_->begin();
    if (!transaction) {
      if (!unclear) answer = tl::unexpected(transaction.error());
      break;
    }
    auto& mark = *mutations.emplace_back().mutable_upsert();
    client_->set_key(*mark.mutable_key(), kSlotKind, slot_name);
    set_number(mark, kVersion, stamp);
    const auto status = commit(*transaction, std::move(mutations), attempts);
    if (status.ok()) {
      answer = true;
      break;
    }
    if (has_changed(status)) {  // since it was looked at: look again
      pause_for_others(lost_races++, 200);
      continue;
    }
    unclear = unclear || reply_of(status) == Reply::kUnclear;
    if (attempts.again(status) && (!unclear || client_->close(*transaction, attempts).ok())) continue;
    if (!unclear) answer = tl::unexpected(status);
    break;
  }
  return answer;
}

}  // namespace farheap::engines::datastore
