// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/etcd/space.hpp"

#include <fmt/format.h>

#include "base/mutex.hpp"
#include "base/random_number.hpp"

namespace farheap::engines::etcd {
namespace {

api::Compare made_at(const std::string& key, std::int64_t revision) {
  api::Compare compare;
  compare.set_key(key);
  compare.set_target(api::Compare::CREATE);
  compare.set_result(api::Compare::EQUAL);
  compare.set_create_revision(revision);
  return compare;
}

void look_at(api::RequestOp& operation, const std::string& key) {
  operation.mutable_request_range()->set_key(key);
  operation.mutable_request_range()->set_keys_only(true);
}

}  // namespace

Space::Space(std::unique_ptr<Client> client, std::unique_ptr<Stores> stores, const StoreOptions& options)
    : ServerSpace(*client, *stores, options),
      client_(std::move(client)),
      stores_(std::move(stores)),
      keys_(keys_of(key())),
      fence_key_(fmt::format("{}h/{:016x}", keys_.prefix, base::random_number())),
      // Longer than a server is waited for: a frozen one must not cost the lease.
      lease_seconds_(60 + 2 * client_->patience().all.count() / 1000) {}

Result<std::unique_ptr<Space>> Space::open(std::unique_ptr<Client> client, const StoreOptions& options) {
  auto stores = std::make_unique<Stores>(*client);
  std::unique_ptr<Space> space(new Space(std::move(client), std::move(stores), options));
  if (auto ok = space->enter(); !ok) return fail(std::move(ok.error()));
  return space;
}

Status Space::prepare() {
  if (const auto status = grant_lease(); !status.ok()) return fail(client_->error(status, "cannot open the store"));
  return {};
}

// Takes note of when it was made, and of the cluster's revision.
Answer<std::optional<Found>> Space::find() {
  api::RangeRequest request;
  request.set_key(keys_.about());
  const auto found = client_->range(request);
  if (!found) return tl::unexpected(found.error());
  if (found->kvs_size() == 0) return std::optional<Found>();
  made_at_ = found->kvs(0).create_revision();
  cluster_ = found->header().cluster_id();
  revision_ = found->header().revision();
  const base::LockGuard lock(work_mutex_);
  mark_ = revision_;
  return Found{found->kvs(0).value()};
}

grpc::Status Space::make(const About& about) {
  api::TxnRequest request;
  *request.add_compare() = made_at(keys_.about(), 0);
  auto& put = *request.add_success()->mutable_request_put();
  put.set_key(keys_.about());
  put.set_value(about_text(about));
  put.set_lease(lease());
  const auto made = client_->transact(request);
  return made ? grpc::Status() : made.error();
}

Answer<std::uint64_t> Space::begin() {
  auto attempts = client_->attempts();
  if (const auto status = move_fence(0, attempts); !status.ok()) return tl::unexpected(status);
  if (!is_lost()) working_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  return 0;
}

// ---- guards

void Space::guard(api::TxnRequest& request) const {
  *request.add_compare() = made_at(keys_.about(), made_at_);
  look_at(*request.add_failure(), keys_.about());
  look_at(*request.add_failure(), fence_key_);
}

void Space::guard(api::TxnRequest& request, std::int64_t fence) const {
  guard(request);
  auto& compare = *request.add_compare();
  compare.set_key(fence_key_);
  compare.set_target(api::Compare::MOD);
  compare.set_result(api::Compare::EQUAL);
  compare.set_mod_revision(fence);
}

Space::Told Space::told_by(const api::TxnResponse& failed, std::int64_t fence) {
  if (failed.responses_size() < kGuardAnswers) {
    (void)lost("the server answers in another way than it should");
    return Told::kLost;
  }
  const auto& about = failed.responses(0).response_range();
  if (about.kvs_size() == 0 || about.kvs(0).create_revision() != made_at_) {
    (void)lost(about.kvs_size() != 0 ? "the cluster lost it, and somebody has made a new one since"
               : is_kept()           ? "the cluster lost all that was in it, or somebody has removed it"
                           : "it gave no sign of life for too long, and was taken for one of a killed program");
    return Told::kLost;
  }
  const auto& fences = failed.responses(1).response_range();
  const auto there = fences.kvs_size() == 0 ? 0 : fences.kvs(0).mod_revision();
  if (there == fence) return Told::kOwn;
  // Only this handle moves its fence: an attempt to move it came late, another thread has moved it, or its lease was
  // not kept while nothing could be reached.
  if (there != 0) {
    const base::LockGuard lock(fence_mutex_);
    if (there > fence_) fence_ = there;
    return Told::kFenceMoved;
  }
  auto attempts = client_->attempts();
  if (grant_lease().ok()) (void)move_fence(fence, attempts);
  return is_lost() ? Told::kLost : Told::kFenceMoved;
}

bool Space::believe_answer(const api::ResponseHeader& header, std::int64_t before) {
  if (header.cluster_id() != cluster_) {
    (void)lost("another cluster answers in its place");
  } else if (header.revision() < before) {
    (void)lost(fmt::format("the cluster went back to an older state (revision {}, was {})", header.revision(), before));
  }
  auto seen = revision_.load();
  while (header.revision() > seen && !revision_.compare_exchange_weak(seen, header.revision())) {
  }
  return !is_lost();
}

grpc::Status Space::move_fence(std::int64_t from, Attempts& attempts) {
  const base::LockGuard lock(fence_mutex_);
  if (fence_ != from) return {};
  api::TxnRequest request;
  *request.add_compare() = made_at(keys_.about(), made_at_);
  auto& put = *request.add_success()->mutable_request_put();
  put.set_key(fence_key_);
  put.set_lease(lease_);
  api::TxnResponse response;
  const auto before = revision();
  const auto status = client_->ask(attempts, [&](Client::Member& member, grpc::ClientContext& context) {
    response.Clear();
    return member.kv->Txn(&context, request, &response);
  });
  if (!status.ok()) return status;
  if (!believe_answer(response.header(), before)) return {};
  if (response.succeeded()) {
    fence_ = response.header().revision();
  } else {
    (void)lost("the cluster lost it, or somebody has removed it");
  }
  return {};
}

// ---- once and only once

std::string Space::slot_key(std::size_t slot) const { return fmt::format("{}/{}", fence_key_, slot); }

Answer<Space::Once> Space::once(const api::TxnRequest& wanted) {
  const StampSlots::Had had(slots_);
  const auto slot = slot_key(had.number());
  const std::string stamp = std::to_string(stamp_++);
  auto attempts = client_->attempts();
  Answer<Once> answer = tl::unexpected(grpc::Status(grpc::StatusCode::UNKNOWN, "no answer came"));
  for (bool unclear = false;;) {
    const auto used = fence();
    api::TxnRequest request;
    guard(request, used);
    request.add_failure()->mutable_request_range()->set_key(slot);
    request.MergeFrom(wanted);
    auto& mark = *request.add_success()->mutable_request_put();
    mark.set_key(slot);
    mark.set_value(stamp);
    mark.set_lease(lease_);

    Once once;
    const auto before = revision();
    const auto asked = client_->current();
    grpc::ClientContext context;
    context.set_deadline(attempts.deadline());
    client_->prepare(context);
    auto status = client_->member(asked).kv->Txn(&context, request, &once.response);
    if (!status.ok()) {
      unclear = unclear || reply_of(status) == Reply::kUnclear;
      if (client_->again(attempts, status, asked) && (!unclear || move_fence(used, attempts).ok())) continue;
      if (!unclear) answer = tl::unexpected(status);
      break;
    }
    if (!believe_answer(once.response.header(), before)) break;
    once.done = once.response.succeeded();
    once.revision = once.response.header().revision();
    if (!once.done) {
      const auto told = told_by(once.response, used);
      const auto& marks = once.response.responses(kGuardAnswers).response_range();
      const bool by_lost_answer = unclear && marks.kvs_size() > 0 && marks.kvs(0).value() == stamp;
      if (by_lost_answer) once = {.done = true, .revision = marks.kvs(0).mod_revision(), .response = {}};
      if (!by_lost_answer && told == Told::kFenceMoved) continue;
      if (told == Told::kLost) break;
    }
    answer = std::move(once);
    break;
  }
  return answer;
}

}  // namespace farheap::engines::etcd
