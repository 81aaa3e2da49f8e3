// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scratch stores in Datastore, which has no leases: a program gives a sign of life, and what gave none for long is
// removed by the next that comes.
#include <fmt/format.h>

#include <chrono>

#include "engines/datastore/space.hpp"

namespace farheap::engines::datastore {
namespace {

constexpr std::chrono::minutes kBeatEvery{1};
constexpr std::chrono::minutes kStaleAfter{10};

std::uint64_t now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

}  // namespace

void Space::keep_beating(const std::stop_token& stop) {
  std::unique_lock lock(beat_mutex_);
  for (;;) {
    beat_now_.wait_for(lock, stop, kBeatEvery, [] { return false; });
    if (stop.stop_requested()) return;
    (void)write({{description()}});  // a server that cannot be reached is for the calls to tell
  }
}

Answer<std::vector<Scratch>> scratch_stores(Client& client, const std::string& name) {
  constexpr int kMost = 10000;
  const auto found = client.query(client.names_between(kStoreKind, name + "/s/", name + "/s0"), false, kMost);
  if (!found) return tl::unexpected(found.error());
  constexpr auto kStale = static_cast<std::uint64_t>(std::chrono::microseconds(kStaleAfter).count());
  std::vector<Scratch> all;
  for (const auto& entity : *found) {
    const auto about = about_in(text_in(entity, kAbout));
    if (!about) continue;
    all.push_back({name_of(entity.key()), about->block_bytes, number_in(entity, kBeat) + kStale < now()});
  }
  return all;
}

grpc::Status remove_store(Client& client, const std::string& store) {
  grpc::Status status;
  for (const auto* kind : {kBlockKind, kCounterKind, kSlotKind}) {
    // Not what is below "NAME/s/", which are stores of their own.
    if (status.ok()) status = client.remove_between(kind, store + "/", store + "/s/");
    if (status.ok()) status = client.remove_between(kind, store + "/s0", store + "0");
  }
  if (!status.ok()) return status;
  api::Mutation last;
  client.set_key(*last.mutable_delete_(), kStoreKind, store);
  return client.mutate({last});
}

// What cannot be collected now is collected by the next.
void Space::collect() {
  const auto found = scratch_stores(*client_, client_->place().store_name());
  if (!found) return;
  for (const auto& scratch : *found) {
    if (scratch.is_stale) (void)remove_store(*client_, scratch.store);
  }
}

Space::~Space() {
  if (beating_.joinable()) {
    beating_.request_stop();
    beating_.join();
  }
  if (!is_made_) return;
  client_->hurry();
  if (!kept_) {
    (void)remove_store(*client_, store_);
  } else if (slots_ > 0) {
    (void)client_->remove_between(kSlotKind, prefix() + handle_ + "/", prefix() + handle_ + "0");
  }
}

}  // namespace farheap::engines::datastore
