// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "share/segment_leases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "os/boot_clock.hpp"
#include "os/runtime_threads.hpp"

namespace farheap::share {
namespace {

constexpr char kCannotOpen[] = "cannot open the heap";

std::uint64_t block_of(std::uint64_t reader) { return kFirstLease + 1 + reader; }

}  // namespace

SegmentLeases::SegmentLeases(std::unique_ptr<Store> store, std::string name)
    : store_(std::move(store)), name_(std::move(name)) {}

Result<std::unique_ptr<SegmentLeases>> SegmentLeases::take(std::unique_ptr<Store> store, LeaseUse use, std::string name,
                                                           Beats beats) {
  if (!has(store->capabilities(), Capability::kVersions) || !has(store->capabilities(), Capability::kLinearisable)) {
    return fail(ErrorCode::kUnavailable, kCannotOpen, name,
                "its store has no compare-and-swap that all clients see alike",
                "name another engine: `farheap store kinds` lists them");
  }
  std::unique_ptr<SegmentLeases> leases(new SegmentLeases(std::move(store), std::move(name)));
  Status taken = use == LeaseUse::kReads ? leases->take_readers() : leases->take_writers(use);
  if (taken && beats == Beats::kByThread) taken = leases->start_beating();
  if (!taken) return fail(std::move(taken.error()));
  return leases;
}

Result<bool> SegmentLeases::has_writer(Store& store) { return StoreLease(store, kFirstLease).is_held(); }

Status SegmentLeases::take_writers(LeaseUse use) {
  base::LockGuard lock(mutex_);
  mine_ = std::make_unique<StoreLease>(*store_, kFirstLease);
  for (;;) {
    auto held = mine_->is_held();
    if (!held) return fail(std::move(held.error()));
    if (*held) {
      const std::string& holder = mine_->record().name;
      return fail(ErrorCode::kConflict, kCannotOpen, name_,
                  "it is open for writing by " + (holder.empty() ? "another process" : holder), "close it there first");
    }
    auto taken = mine_->take(use);
    if (!taken) return fail(std::move(taken.error()));
    if (*taken) break;
  }
  const LeaseRecord& record = mine_->record();
  fence_ = record.fence, reserved_ = record.reserved;
  is_anybody_late_ = record.fence != 0 && record.fence == record.reserved;
  return use == LeaseUse::kAlone ? check_nobody_reads() : Status{};
}

// A reader elsewhere is there if its lease changes; after a term without a change look_at_readers() has ended it.
Status SegmentLeases::check_nobody_reads() {
  std::array<Version, kMostReaders> first{};
  for (bool is_first = true;; is_first = false) {
    if (Status looked = look_at_readers(); !looked) return looked;
    bool is_any = false;
    for (std::size_t i = 0; i < kMostReaders; ++i) {
      const Reader& reader = readers_[i];
      if (is_first) first[i] = reader.version;
      if (!reader.is_taken()) continue;
      is_any = true;
      if (reader.version != first[i] || os::presence_of(reader.record.process) == os::Presence::kHere) {
        return fail(ErrorCode::kConflict, kCannotOpen, name_, "it is open for reading by " + reader.record.name,
                    "close it there first");
      }
    }
    if (!is_any) return {};
    os::boot_clock_sleep(lease_term() / 16);
    if (mine_->is_sure()) continue;
    if (Status renewed = mine_->renew(); !renewed) return renewed;
  }
}

Status SegmentLeases::take_readers() {
  base::LockGuard lock(mutex_);
  for (std::uint64_t reader = 0; reader < kMostReaders && mine_ == nullptr; ++reader) {
    auto lease = std::make_unique<StoreLease>(*store_, block_of(reader));
    auto there = lease->look();
    if (!there) return fail(std::move(there.error()));
    const LeaseRecord& record = lease->record();
    const bool is_free = record.use == LeaseUse::kNone || os::presence_of(record.process) == os::Presence::kGone;
    if (!is_free) continue;
    auto taken = lease->take(LeaseUse::kReads, kNobody);
    if (!taken) return fail(std::move(taken.error()));
    if (*taken) mine_ = std::move(lease);
  }
  if (mine_ == nullptr) {
    return fail(ErrorCode::kUnavailable, kCannotOpen, name_, fmt::format("{} processes read it already", kMostReaders),
                "close it in one of them");
  }
  StoreLease writers(*store_, kFirstLease);
  auto there = writers.look();
  if (!there) return fail(std::move(there.error()));
  if (writers.record().use != LeaseUse::kAlone) return {};
  auto held = writers.is_held();
  if (!held) return fail(std::move(held.error()));
  if (!*held || writers.record().use != LeaseUse::kAlone) return {};
  return fail(ErrorCode::kConflict, kCannotOpen, name_, "it is being created or removed by " + writers.record().name,
              "wait");
}

Status SegmentLeases::let_readers_in() {
  base::LockGuard lock(mutex_);
  LeaseRecord next = mine_->record();
  next.use = LeaseUse::kWrites, next.commit = kNobody;
  return mine_->set(std::move(next));
}

Status SegmentLeases::take(std::uint64_t commit) {
  base::LockGuard lock(mutex_);
  if (mine_->record().commit == commit) return {};
  LeaseRecord next = mine_->record();
  next.commit = commit;
  return mine_->set(std::move(next));
}

Result<std::uint64_t> SegmentLeases::oldest() {
  base::LockGuard lock(mutex_);
  if (Status looked = look_at_readers(); !looked) return fail(std::move(looked.error()));
  std::uint64_t oldest = kNobody;
  for (const Reader& reader : readers_) {
    if (reader.is_taken()) oldest = std::min(oldest, reader.record.commit);
  }
  return oldest;
}

Status SegmentLeases::look_at_readers() {
  const std::size_t block_bytes = store_->limits().block_bytes;
  const std::size_t at_once = std::min<std::size_t>(kMostReaders, store_->limits().largest_batch_operations);
  std::vector<std::byte> bytes(kMostReaders * block_bytes);
  std::vector<Get> gets(kMostReaders);
  for (std::size_t i = 0; i < kMostReaders; ++i) {
    gets[i] = {.block = block_of(i),
               .into = std::span(bytes).subspan(i * block_bytes, block_bytes),
               .known = readers_[i].version};
  }
  for (std::size_t i = 0; i < kMostReaders; i += at_once) {
    Status status = store_->get(std::span(gets).subspan(i, std::min(at_once, kMostReaders - i)));
    if (!status) return status;
  }
  for (std::size_t i = 0; i < kMostReaders; ++i) {
    Reader& reader = readers_[i];
    if (gets[i].outcome == Outcome::kAbsent) {
      reader = {};
      continue;
    }
    if (gets[i].outcome == Outcome::kOk) {
      const auto record = decode(gets[i].into);
      if (!record) {
        return fail(ErrorCode::kCorrupt, "cannot see who reads", name_,
                    fmt::format("block {} is no lease", block_of(i)));
      }
      reader = {gets[i].version, *record, os::boot_clock_ns()};
    }
    if (!reader.is_taken()) continue;
    const os::Presence presence = os::presence_of(reader.record.process);
    const bool is_silent = os::boot_clock_ns() - reader.since_ns > std::chrono::nanoseconds(lease_term()).count();
    if (presence == os::Presence::kGone || (presence == os::Presence::kElsewhere && is_silent)) {
      if (Status ended = end_lease_of(i); !ended) return ended;
    }
  }
  return {};
}

// Its reader finds out that it has changed hands, before it uses what it reads.
Status SegmentLeases::end_lease_of(std::uint64_t number) {
  Reader& reader = readers_[number];
  LeaseRecord ended = reader.record;
  ended.use = LeaseUse::kNone;
  std::vector<std::byte> block(store_->limits().block_bytes);
  encode(ended, block);
  Put put{.block = block_of(number), .from = block, .expected = reader.version};
  if (Status status = store_->put({&put, 1}); !status) return status;
  if (put.outcome == Outcome::kOk) reader = {put.version, ended, os::boot_clock_ns()};
  return {};
}

Status SegmentLeases::make_sure() { return make_sure(0); }

// A renewal that took long may be over before it is there.
Status SegmentLeases::make_sure(std::uint64_t end) {
  constexpr int kTries = 4;
  constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 16;  // 256 MiB of pages, and two blocks of the map of space
  if (until_when().is_sure() && end <= reserved_.load()) return {};
  base::LockGuard lock(mutex_);
  for (int i = 0; i < kTries; ++i) {
    if (mine_->is_sure() && end <= reserved_.load()) return {};
    if (!mine_->is_taken()) {
      return fail(ErrorCode::kConflict, "the lease is lost", name_, "somebody else has it", "open the heap again");
    }
    LeaseRecord next = mine_->record();
    if (end > next.reserved) next.reserved = (end / kAtOnce + 1) * kAtOnce;
    if (Status status = mine_->set(std::move(next)); !status) return status;
    reserved_ = mine_->record().reserved;
  }
  return fail(ErrorCode::kUnavailable, "the lease cannot be kept", name_,
              "its store takes longer to answer than a lease lasts", "see to the network, or to the server");
}

void SegmentLeases::doubt() {
  was_in_doubt_ = true;
  fence_ = reserved_.load();
}

Result<std::uint64_t> SegmentLeases::blocks() {
  base::LockGuard lock(mutex_);
  StoreLease writers(*store_, kFirstLease);
  auto there = writers.look();
  if (!there) return fail(std::move(there.error()));
  if (Status looked = look_at_readers(); !looked) return fail(std::move(looked.error()));
  const auto readers = std::ranges::count_if(readers_, [](const Reader& one) { return one.version != 0; });
  return (*there ? 1 : 0) + static_cast<std::uint64_t>(readers);
}

Status SegmentLeases::start_beating() {
  auto thread = os::start_ending_thread(run, this);
  if (!thread) return fail(std::move(thread.error()));
  thread_ = *thread;
  beating_ = true;
  return {};
}

void* SegmentLeases::run(void* leases) {
  static_cast<SegmentLeases*>(leases)->keep_beating();
  return nullptr;
}

Status SegmentLeases::beat() {
  base::LockGuard lock(mutex_);
  return mine_->is_taken() ? mine_->renew() : Status{};
}

// What fails here is found by make_sure(): a server may be back in time.
void SegmentLeases::keep_beating() {
  base::LockGuard lock(mutex_);
  while (!stopping_) {
    if (changed_.wait_for(mutex_, lease_term() / 4, [&]() FARHEAP_REQUIRES(mutex_) { return stopping_; })) return;
    if (!mine_->is_taken()) return;
    if (Status renewed = mine_->renew(); !renewed) {
      base::log(base::LogLevel::kWarn, "{}", renewed.error().message());
    }
  }
}

SegmentLeases::~SegmentLeases() {
  {
    base::LockGuard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (beating_) pthread_join(thread_, nullptr);
  if (mine_ != nullptr) mine_->release(was_in_doubt_ ? reserved_.load() : fence_.load());
}

void SegmentLeases::forget() {
  base::LockGuard lock(mutex_);
  mine_->forget();
}

// Its mutex may have been held by the thread that is not here, and the store's too: nothing of them is touched again.
void SegmentLeases::leave_to_parent() {
  std::construct_at(&mutex_);
  std::construct_at(&changed_);
  beating_ = false;
  base::LockGuard lock(mutex_);
  mine_->forget();
  (void)mine_.release();
  (void)store_.release();
}

}  // namespace farheap::share
