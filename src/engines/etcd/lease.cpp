// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a handle does beside its calls: it keeps its lease, with which its fence and, of a scratch store, everything
// goes away when its program is killed; and it has etcd forget the past, which it would keep until it is full.
#include <algorithm>

#include "base/mutex.hpp"
#include "engines/etcd/space.hpp"

namespace farheap::engines::etcd {
namespace {

// What etcd keeps of the past: between one and two times as much as this of what a handle has written.
constexpr std::size_t kHistoryBytes = std::size_t{32} << 20;

}  // namespace

grpc::Status Space::grant_lease() {
  api::LeaseGrantRequest request;
  request.set_ttl(lease_seconds_);
  api::LeaseGrantResponse response;
  const auto status = client_->ask([&](Client::Member& member, grpc::ClientContext& context) {
    return member.lease->LeaseGrant(&context, request, &response);
  });
  if (status.ok()) lease_ = response.id();
  return status;
}

grpc::Status Space::keep_lease() {
  return client_->ask([&](Client::Member& member, grpc::ClientContext& context) {
    const auto stream = member.lease->LeaseKeepAlive(&context);
    api::LeaseKeepAliveRequest request;
    request.set_id(lease_);
    api::LeaseKeepAliveResponse response;
    const bool kept = stream->Write(request) && stream->Read(&response);
    context.TryCancel();
    return kept ? (void)stream->Finish(), grpc::Status() : stream->Finish();
  });
}

void Space::has_written(std::size_t bytes) {
  const base::LockGuard lock(work_mutex_);
  written_ += bytes;
  if (written_ < kHistoryBytes) return;
  written_ = 0;
  compact_to_ = mark_;
  mark_ = revision();
  work_now_.notify_one();
}

void Space::work(const std::stop_token& stop) {
  const auto every = std::chrono::seconds(lease_seconds_ / 4);
  auto next = std::chrono::steady_clock::now() + every;
  base::UniqueLock lock(work_mutex_);
  while (!stop.stop_requested()) {
    work_now_.wait_until(lock, stop, next, [&]() FARHEAP_REQUIRES(work_mutex_) { return compact_to_ != 0; });
    if (stop.stop_requested()) return;
    const auto to = std::exchange(compact_to_, 0);
    lock.unlock();
    if (to != 0) {
      api::CompactionRequest request;
      request.set_revision(to);
      api::CompactionResponse response;
      // Others compact as well: a revision that is gone already is fine.
      (void)client_->ask([&](Client::Member& member, grpc::ClientContext& context) {
        return member.kv->Compact(&context, request, &response);
      });
    }
    if (std::chrono::steady_clock::now() >= next) {
      (void)keep_lease();  // a server that cannot be reached is for the calls to tell
      next = std::chrono::steady_clock::now() + every;
    }
    lock.lock();
  }
}

Space::~Space() {
  (void)leave();
  if (working_.joinable()) {
    working_.request_stop();
    work_now_.notify_all();
    working_.join();
  }
  if (lease_ == 0) return;
  client_->hurry();
  api::LeaseRevokeRequest request;
  request.set_id(lease_);
  api::LeaseRevokeResponse response;
  (void)client_->ask([&](Client::Member& member, grpc::ClientContext& context) {
    return member.lease->LeaseRevoke(&context, request, &response);
  });
}

}  // namespace farheap::engines::etcd
