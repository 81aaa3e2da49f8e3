// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Invariant: the transaction of a slot that nobody has taken is reset, or live and of a state that was the last one
// when it was given back, which the next change resets.
#include "store/lmdb_readers.hpp"

#include <pthread.h>
#include <sched.h>

#include "os/robust_list.hpp"

namespace farheap::store {
namespace {

int begin(MDB_env* env, MDB_txn*& txn) {
  const os::RobustListAside aside;  // LMDB's lock of readers is a robust one
  const int error = mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn);
  if (error != 0) txn = nullptr;
  return error;
}

void abort(MDB_txn*& txn) {
  if (txn != nullptr) mdb_txn_abort(txn);
  txn = nullptr;
}

// LMDB reads the number of the last state, and then copies its roots from one of two places (mdb.c, mdb_txn_renew0).
// Two commits in between write over that place: the copy is then newer than its number, or half of each. No second
// commit has begun to write where not even the first is seen.
bool is_whole(MDB_env* env, MDB_txn* txn) {
  MDB_envinfo info{};
  return mdb_env_info(env, &info) == 0 && info.me_last_txnid <= mdb_txn_id(txn);
}

// Lets the transaction show the last state; it is begun where there is none. Requires: it is reset, or none.
int renew(MDB_env* env, MDB_txn*& txn) {
  // A process that died amid its commit makes every copy look doubtful until the next commit.
  constexpr int kTries = 1000;
  if (txn != nullptr && mdb_txn_renew(txn) != 0) abort(txn);  // its place in the table was taken away
  int error = txn == nullptr ? begin(env, txn) : 0;
  for (int i = 0; i < kTries && error == 0 && !is_whole(env, txn); ++i) {
    if (i > 0) sched_yield();
    mdb_txn_reset(txn);
    error = mdb_txn_renew(txn);
  }
  if (error != 0) abort(txn);
  return error;
}

// Where a thread looks first, so that threads seldom meet.
std::size_t place_of_thread() {
  return static_cast<std::size_t>((static_cast<std::uint64_t>(pthread_self()) * 0x9E3779B97F4A7C15u) >> 32);
}

}  // namespace

LmdbReaders::~LmdbReaders() {
  if (mark_.is_gone()) return;  // an end here would be one in the parent's table
  for (Slot& slot : slots_) abort(slot.txn);
}

LmdbReaders::Slot* LmdbReaders::take() {
  if (mark_.is_gone()) return nullptr;
  const std::size_t first = place_of_thread();
  for (std::size_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_[(first + i) % kSlots];
    if (!slot.is_taken.load(std::memory_order_relaxed) && !slot.is_taken.exchange(true)) return &slot;
  }
  return nullptr;
}

// The stamp is taken before the state: changes that end in between make it look older than it is, never newer.
int LmdbReaders::make_current(Slot& slot) {
  if (slot.is_live && is_current(slot)) return 0;
  if (slot.is_live) mdb_txn_reset(slot.txn);
  slot.is_live = false;
  slot.stamp = ended_.load();
  const int error = renew(env_, slot.txn);
  slot.is_live = error == 0;
  return error;
}

LmdbReaders::Reading::Reading(LmdbReaders& readers) : readers_(readers), slot_(readers.take()) {
  error_ = slot_ != nullptr ? readers.make_current(*slot_) : renew(readers.env_, txn_);
  if (slot_ != nullptr) txn_ = slot_->txn;
}

LmdbReaders::Reading::~Reading() {
  if (slot_ == nullptr) {
    abort(txn_);
    return;
  }
  if (is_distrusted_) {
    abort(slot_->txn);
    slot_->is_live = false;
  } else if (slot_->is_live && !readers_.is_current(*slot_)) {
    mdb_txn_reset(slot_->txn);
    slot_->is_live = false;
  }
  slot_->is_taken.store(false);
}

LmdbReaders::Change::Change(LmdbReaders& readers) : readers_(readers) {
  readers.begun_.fetch_add(1);  // from here on nobody gives back a live one, but who has just looked
  if (!readers.is_only_writer_ || readers.mark_.is_gone()) return;
  for (Slot& slot : readers.slots_) {
    if (slot.is_taken.exchange(true)) continue;
    if (slot.is_live) mdb_txn_reset(slot.txn);
    slot.is_live = false;
    slot.is_taken.store(false);
  }
}

LmdbReaders::Change::~Change() { readers_.ended_.fetch_add(1); }

}  // namespace farheap::store
