// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/spanner/client.hpp"

#include <utility>

#include "base/mutex.hpp"

namespace farheap::engines::spanner {
namespace {

constexpr std::size_t kMostFreeSessions = 32;

std::vector<Row> rows_of(const api::ResultSet& set) {
  std::vector<Row> rows;
  for (const auto& values : set.rows()) {
    auto& row = rows.emplace_back();
    for (const auto& value : values.values()) row.push_back(value.string_value());
  }
  return rows;
}

bool is_session_lost(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::NOT_FOUND &&
         status.error_message().find("Session not found") != std::string::npos;
}

}  // namespace

// ---- sessions

Sessions::~Sessions() {
  for (const auto& name : free_) {  // the server would forget them within the hour
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    api::DeleteSessionRequest request;
    request.set_name(name);
    google::protobuf::Empty response;
    if (!stub_.DeleteSession(&context, request, &response).ok()) return;
  }
}

Answer<Sessions::Lease> Sessions::take(std::chrono::system_clock::time_point deadline) {
  std::uint64_t age = 0;
  {
    const base::LockGuard lock(mutex_);
    age = age_;
    if (!free_.empty()) {
      auto name = std::move(free_.back());
      free_.pop_back();
      return Lease(*this, std::move(name), age);
    }
  }
  grpc::ClientContext context;
  context.set_deadline(deadline);
  api::CreateSessionRequest request;
  request.set_database(database_);
  api::Session session;
  const auto status = stub_.CreateSession(&context, request, &session);
  if (!status.ok()) return tl::unexpected(status);
  return Lease(*this, session.name(), age);
}

void Sessions::give_back(std::string name, std::uint64_t age) {
  const base::LockGuard lock(mutex_);
  if (age == age_ && free_.size() < kMostFreeSessions) free_.push_back(std::move(name));
}

void Sessions::forget_all() {
  const base::LockGuard lock(mutex_);
  free_.clear();
  ++age_;
}

// ---- requests

Answer<std::vector<Row>> Transaction::read(api::ReadRequest request) {
  request.set_session(session_);
  request.mutable_transaction()->set_id(id_);
  grpc::ClientContext context;
  context.set_deadline(deadline_);
  api::ResultSet set;
  const auto status = stub_.Read(&context, request, &set);
  if (!status.ok()) return tl::unexpected(status);
  return rows_of(set);
}

Result<std::unique_ptr<Client>> Client::open(const std::string& place, const store::Parameters& parameters,
                                             const StoreOptions& /*options*/) {
  auto where = google_place("spanner", place, "DATABASE");
  if (!where) return fail(std::move(where.error()));
  const auto patience = server_patience(parameters);
  if (!patience) return fail(patience.error());
  const auto channel = google_channel("SPANNER_EMULATOR_HOST", "spanner.googleapis.com", where->describe());
  if (!channel) return fail(channel.error());
  return std::make_unique<Client>(std::move(*where), *patience, *channel);
}

Client::Client(GooglePlace place, ServerPatience patience, const GoogleChannel& channel)
    : ServerClient(place.describe(), patience, channel.is_emulator, channel.channel),
      place_(std::move(place)),
      stub_(api::Spanner::NewStub(channel.channel)),
      sessions_(std::make_unique<Sessions>(*stub_, database_path())) {}

grpc::Status Client::noticed(grpc::Status status) {
  if (!is_session_lost(status)) return status;
  sessions_->forget_all();
  watch()->doubt();
  return {grpc::StatusCode::ABORTED, "the server forgot the session"};
}

template <class Ask>
Answer<std::vector<Row>> Client::rows_from(Ask ask_once) {
  auto attempts = this->attempts();
  api::ResultSet set;
  const auto status = ask(attempts, [&](grpc::ClientContext& context) {
    const auto session = sessions_->take(attempts.deadline());
    if (!session) return session.error();
    return noticed(ask_once(context, session->name(), set));
  });
  if (!status.ok()) return tl::unexpected(status);
  return rows_of(set);
}

Answer<std::vector<Row>> Client::read(api::ReadRequest request) {
  return rows_from([&](grpc::ClientContext& context, const std::string& session, api::ResultSet& set) {
    request.set_session(session);
    return stub_->Read(&context, request, &set);
  });
}

Answer<std::vector<Row>> Client::query(api::ExecuteSqlRequest request) {
  return rows_from([&](grpc::ClientContext& context, const std::string& session, api::ResultSet& set) {
    request.set_session(session);
    return stub_->ExecuteSql(&context, request, &set);
  });
}

// ---- transactions

grpc::Status Client::transact(const Fill& fill) {
  if (!is_emulator()) return transact_now(fill);
  const base::LockGuard turn(turn_);
  return transact_now(fill);
}

grpc::Status Client::transact_now(const Fill& fill) {
  auto attempts = writing_attempts();
  for (;;) {
    const auto status = try_transaction(fill, attempts);
    if (status.ok() || !attempts.again(status)) return status;
  }
}

// A transaction is committed at most once, so a commit without an answer is asked for again in the same words. Only if
// the server has forgotten it is it begun anew.
grpc::Status Client::try_transaction(const Fill& fill, Attempts& attempts) {
  const auto session = sessions_->take(attempts.deadline());
  if (!session) return session.error();
  api::BeginTransactionRequest begin;
  begin.set_session(session->name());
  begin.mutable_options()->mutable_read_write();
  api::Transaction begun;
  {
    grpc::ClientContext context;
    context.set_deadline(attempts.deadline());
    if (const auto status = noticed(stub_->BeginTransaction(&context, begin, &begun)); !status.ok()) return status;
  }
  Transaction transaction(*stub_, session->name(), begun.id(), attempts.deadline());
  auto status = noticed(fill(transaction));
  if (status.ok() && !transaction.mutations.empty()) {
    api::CommitRequest commit;
    commit.set_session(session->name());
    commit.set_transaction_id(begun.id());
    commit.mutable_mutations()->Swap(&transaction.mutations);
    do {
      grpc::ClientContext context;
      context.set_deadline(attempts.deadline());
      api::CommitResponse response;
      status = noticed(stub_->Commit(&context, commit, &response));
    } while (reply_of(status) == Reply::kUnclear && attempts.again(status));
    if (status.ok() || reply_of(status) == Reply::kUnclear) return status;
  }
  api::RollbackRequest rollback;
  rollback.set_session(session->name());
  rollback.set_transaction_id(begun.id());
  grpc::ClientContext context;
  context.set_deadline(attempts.deadline());
  google::protobuf::Empty response;
  (void)stub_->Rollback(&context, rollback, &response);  // it would end by itself
  return status;
}

}  // namespace farheap::engines::spanner
