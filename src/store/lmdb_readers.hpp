// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Read transactions of LMDB that are used again. To begin one takes a lock that all processes share, and a place in
// LMDB's table of readers; to renew one takes neither, and no system call.
//
// A transaction is renewed for each use, so that it sees what was committed last. Where nobody but this store writes to
// the environment, it is only renewed after a change: meanwhile the state that it shows is the last one.
//
// Thread-safety: any thread. In a forked child nothing of it is touched, because the table of readers is the parent's,
// too: transactions are then begun and aborted for each use.
#pragma once

#include <lmdb.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "os/fork_mark.hpp"

namespace farheap::store {

class LmdbReaders {
  struct Slot;

 public:
  // `is_only_writer`: every change of the environment is inside a Change of this object. The environment outlives it.
  LmdbReaders(MDB_env* env, bool is_only_writer) : env_(env), is_only_writer_(is_only_writer) {}
  ~LmdbReaders();
  LmdbReaders(const LmdbReaders&) = delete;
  LmdbReaders& operator=(const LmdbReaders&) = delete;

  // One use. What was committed before it began is seen.
  class Reading {
   public:
    explicit Reading(LmdbReaders& readers);
    ~Reading();
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    [[nodiscard]] int error() const { return error_; }
    // Requires: no error().
    [[nodiscard]] MDB_txn* get() const { return txn_; }
    // LMDB broke off with an error: the transaction is not used again.
    void distrust() { is_distrusted_ = true; }

   private:
    LmdbReaders& readers_;
    Slot* slot_;  // nullptr: the transaction is for this use alone
    MDB_txn* txn_ = nullptr;
    int error_ = 0;
    bool is_distrusted_ = false;
  };

  // From before a write transaction begins until after it has ended. What idle readers have seen is let go, because
  // LMDB keeps the pages of it.
  class Change {
   public:
    explicit Change(LmdbReaders& readers);
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    LmdbReaders& readers_;
  };

 private:
  // As many threads read at once without beginning a transaction; each may keep a place in the table of readers.
  static constexpr std::size_t kSlots = 8;
  struct alignas(64) Slot {
    std::atomic<bool> is_taken{false};  // whoever took it has what follows for himself
    MDB_txn* txn = nullptr;
    bool is_live = false;     // shows a state; otherwise it is to be renewed
    std::uint64_t stamp = 0;  // the changes that had ended when it was renewed
  };
  [[nodiscard]] Slot* take();
  [[nodiscard]] int make_current(Slot& slot);
  // No change has begun but those that had ended before the slot's transaction was renewed.
  [[nodiscard]] bool is_current(const Slot& slot) const { return is_only_writer_ && begun_.load() == slot.stamp; }

  MDB_env* const env_;
  const bool is_only_writer_;
  os::ForkMark mark_;
  std::atomic<std::uint64_t> begun_{0};  // changes
  std::atomic<std::uint64_t> ended_{0};
  std::array<Slot, kSlots> slots_;
};

}  // namespace farheap::store
