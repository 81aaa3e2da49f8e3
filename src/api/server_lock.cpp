// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lock of a heap on a server: leases in its store, over a handle of their own, so that they do not wait behind
// pages.
#include "api/heap_lock.hpp"
#include "api/heap_store.hpp"
#include "base/without_secrets.hpp"
#include "share/leased_store.hpp"
#include "share/segment_leases.hpp"

namespace farheap::api {
namespace {

class ServerLock final : public HeapLock {
 public:
  explicit ServerLock(std::unique_ptr<share::SegmentLeases> leases) : leases_(std::move(leases)) {}
  Status let_readers_in() override { return leases_->let_readers_in(); }
  Status take(std::uint64_t commit) override { return leases_->take(commit); }
  Result<std::uint64_t> oldest() override { return leases_->oldest(); }
  std::uint64_t fence() const override { return leases_->fence(); }
  bool is_anybody_late() const override { return leases_->is_anybody_late(); }
  void leave_to_parent() override { leases_->leave_to_parent(); }
  std::unique_ptr<Store> guard(std::unique_ptr<Store> store) override {
    return std::make_unique<share::LeasedStore>(std::move(store), *leases_);
  }
  void remove() override { leases_->forget(); }

 private:
  std::unique_ptr<share::SegmentLeases> leases_;
};

share::LeaseUse use_of(HeapLock::For what) {
  switch (what) {
    case HeapLock::For::kReading: return share::LeaseUse::kReads;
    case HeapLock::For::kWriting: return share::LeaseUse::kWrites;
    case HeapLock::For::kAlone: break;
  }
  return share::LeaseUse::kAlone;
}

}  // namespace

Result<std::unique_ptr<HeapLock>> lock_on_server(const HeapPlace& place, HeapLock::For what) {
  auto store = open_heap_store(place);
  if (!store) return fail(std::move(store.error()));
  auto leases = share::SegmentLeases::take(std::move(*store), use_of(what), base::without_secrets(place.uri));
  if (!leases) return fail(std::move(leases.error()));
  return std::make_unique<ServerLock>(std::move(*leases));
}

Result<std::unique_ptr<HeapLock>> HeapLock::take(const HeapPlace& place, For what, std::chrono::milliseconds wait) {
  auto taken = place.is_on_server() ? lock_on_server(place, what) : lock_files(place, what, wait);
  if (taken) (*taken)->for_ = what;
  return taken;
}

Result<bool> HeapLock::has_writer(const HeapPlace& place) {
  if (!place.is_on_server()) return files_have_writer(place);
  auto store = open_heap_store(place);
  if (!store) return fail(std::move(store.error()));
  return share::SegmentLeases::has_writer(**store);
}

}  // namespace farheap::api
