// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/datastore/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <random>

#include "base/random_number.hpp"
#include "engines/grpc/streams.hpp"

namespace farheap::engines::datastore {
namespace {

constexpr char kWhat[] = "cannot open the store";
constexpr std::uint64_t kFormat = 1;
constexpr std::size_t kInFlight = 4;
// The commit found another version than the one it was to write over.
bool has_changed(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::FAILED_PRECONDITION ||
         status.error_code() == grpc::StatusCode::ALREADY_EXISTS;
}

// So that those who race do not come back together.
void pause_for_others(unsigned lost_races) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::this_thread::sleep_for(std::chrono::microseconds(random() % (200u << std::min(lost_races, 7u))));
}

constexpr char kGone[] = "Datastore lost it, or somebody has removed it";

}  // namespace

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

Space::Space(std::unique_ptr<Client> client, const StoreOptions& options)
    : client_(std::move(client)),
      kept_(options.lifetime == Lifetime::kKeep),
      block_bytes_(options.block_bytes),
      store_(client_->place().store_name()),
      handle_(fmt::format("{:016x}", base::random_number())),
      identity_(fmt::format("{:016x}", base::random_number())),
      version_(base::random_number()) {
  if (!kept_) store_ += fmt::format("/s/{:016x}", base::random_number());
}

Result<std::unique_ptr<Space>> Space::open(std::unique_ptr<Client> client, const StoreOptions& options) {
  std::unique_ptr<Space> space(new Space(std::move(client), options));
  if (auto ok = space->set_up(); !ok) return fail(std::move(ok.error()));
  return space;
}

Version Space::next_version() {
  const auto version = version_++;
  return version != 0 ? version : version_++;
}

Status Space::set_up() {
  auto found = client_->find(kStoreKind, store_);
  if (found && !*found) {
    if (auto ok = refuse_foreign_entities(); !ok) return ok;
    // Only where there is none: another one may be quicker.
    api::Mutation make;
    *make.mutable_insert() = description().upsert();
    const auto made = client_->mutate({make});
    if (!made.ok() && made.error_code() != grpc::StatusCode::ALREADY_EXISTS) return fail(client_->error(made, kWhat));
    found = client_->find(kStoreKind, store_);
  }
  if (!found) return fail(client_->error(found.error(), kWhat));
  const auto about = *found ? about_in(text_in(**found, kAbout)) : std::nullopt;
  if (!about) {
    return fail(ErrorCode::kCorrupt, kWhat, client_->place().describe(), "its description is not one of Farheap's",
                "name another one: datastore://PROJECT/NAME");
  }
  if (auto ok = check(*about); !ok) return ok;
  identity_ = about->identity;
  is_made_ = true;
  collect();
  if (!kept_) beating_ = std::jthread([this](const std::stop_token& stop) { keep_beating(stop); });
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

Status Space::refuse_foreign_entities() {
  if (!kept_) return {};  // its name was drawn by chance
  for (const auto* kind : {kBlockKind, kCounterKind}) {
    // "NAME/s/" is for scratch stores.
    for (const auto& [from, to] : {std::pair(prefix(), prefix() + "s/"), std::pair(prefix() + "s0", store_ + "0")}) {
      const auto found = client_->query(client_->names_between(kind, from, to), true, 1);
      if (!found) return fail(client_->error(found.error(), kWhat));
      if (found->empty()) continue;
      return fail(
          ErrorCode::kConflict, kWhat, client_->place().describe(),
          fmt::format("there are entities of others below its name: {} '{}'", kind, name_of(found->front().key())),
          "name another one: datastore://PROJECT/NAME");
    }
  }
  return {};
}

api::Mutation Space::description() const {
  api::Mutation mutation;
  auto& entity = *mutation.mutable_upsert();
  client_->set_key(*entity.mutable_key(), kStoreKind, store_);
  set_text(entity, kAbout, fmt::format("farheap {} {} {}", kFormat, block_bytes_, identity_));
  if (!kept_) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    set_number(entity, kBeat,
               static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
  }
  return mutation;
}

// ---- requests

api::LookupRequest Space::look() const {
  api::LookupRequest request;
  request.set_project_id(client_->place().project);
  client_->set_key(*request.add_keys(), kStoreKind, store_);
  return request;
}

bool Space::believe(api::LookupResponse& response) {
  auto& found = *response.mutable_found();
  const auto own = std::ranges::find_if(
      found, [&](const api::EntityResult& result) { return result.entity().key().path(0).kind() == kStoreKind; });
  const auto about = own != found.end() ? about_in(text_in(own->entity(), kAbout)) : std::nullopt;
  if (own == found.end()) {
    lost(kGone);
  } else if (!about || about->identity != identity_) {
    lost("Datastore lost it, and somebody has made a new one since");
  }
  if (own != found.end()) found.erase(own);
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
    if (!believe(*about)) break;
    std::vector<api::BeginTransactionResponse> begun(pending.size());
    const auto begin = client_->begin_request();
    auto statuses = run_calls(begun, kInFlight, attempts.deadline(),
                              [&](std::size_t, grpc::ClientContext& context, grpc::CompletionQueue* queue) {
                                return client_->stub().AsyncBeginTransaction(&context, begin, queue);
                              });
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (statuses[i].ok()) ready.push_back(i);
    }
    std::vector<api::CommitResponse> answers(ready.size());
    api::CommitRequest request;
    const auto committed = run_calls(answers, kInFlight, attempts.deadline(),
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
    if (end.was_unclear || !client_->again(attempts, end.status)) break;
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
  const auto slot = take_slot();
  const auto slot_name = fmt::format("{}{}/{}", prefix(), handle_, slot);
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
    if (!believe(*found)) break;
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
      pause_for_others(lost_races++);
      continue;
    }
    unclear = unclear || reply_of(status) == Reply::kUnclear;
    if (client_->again(attempts, status) && (!unclear || client_->close(*transaction, attempts).ok())) continue;
    if (!unclear) answer = tl::unexpected(status);
    break;
  }
  give_slot(slot);
  return answer;
}

std::size_t Space::take_slot() {
  const std::lock_guard lock(slots_mutex_);
  if (free_slots_.empty()) return slots_++;
  const auto slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Space::give_slot(std::size_t slot) {
  const std::lock_guard lock(slots_mutex_);
  free_slots_.push_back(slot);
}

void Space::lost(std::string why) {
  const std::lock_guard lock(lost_mutex_);
  if (!is_lost_) lost_ = std::move(why);
  is_lost_ = true;
}

Error Space::lost_error() const {
  const std::lock_guard lock(lost_mutex_);
  return {ErrorCode::kCorrupt, "cannot go on with the store", client_->place().describe(), lost_,
          "start again, or from a snapshot that is kept elsewhere"};
}

}  // namespace farheap::engines::datastore
