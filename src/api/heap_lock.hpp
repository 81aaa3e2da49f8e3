// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who has a heap open: one may write, many may read beside him, and who creates or removes it is alone. Of a heap in
// files that is a lock file beside them (file_lock.cpp), of one on a server leases in its store (server_lock.cpp).
//
// Thread-safety: as VersionLeases; the rest by one thread.
#pragma once

#include <chrono>
#include <farheap/store.hpp>
#include <memory>

#include "api/heap_place.hpp"
#include "api/patience.hpp"
#include "segment/version_leases.hpp"

namespace farheap::api {

class HeapLock : public segment::VersionLeases {
 public:
  enum class For { kReading, kWriting, kAlone };
  // kConflict, with the holder's name, if somebody else's lock still forbids it after `wait`; a holder in files that
  // is being taken down is waited for up to Patience::kForDying longer.
  [[nodiscard]] static Result<std::unique_ptr<HeapLock>> take(const HeapPlace& place, For what,
                                                              std::chrono::milliseconds wait = Patience::usual());
  // Takes nothing.
  [[nodiscard]] static Result<bool> has_writer(const HeapPlace& place);

  [[nodiscard]] bool is_for_reading() const { return for_ == For::kReading; }

  // It was created: others may read it.
  [[nodiscard]] virtual Status let_readers_in() = 0;
  // In a forked child: it goes on as long as the parent has it.
  virtual void leave_to_parent() = 0;
  // The store, so that nothing is done there once the lock is lost. The lock outlives it.
  [[nodiscard]] virtual std::unique_ptr<Store> guard(std::unique_ptr<Store> store) = 0;
  // What it was for was removed, or nothing was made of it: nothing of it is left.
  virtual void remove() = 0;

 private:
  For for_ = For::kWriting;
};

[[nodiscard]] Result<std::unique_ptr<HeapLock>> lock_files(const HeapPlace& place, HeapLock::For what,
                                                           std::chrono::milliseconds wait);
[[nodiscard]] Result<bool> files_have_writer(const HeapPlace& place);
[[nodiscard]] Result<std::unique_ptr<HeapLock>> lock_on_server(const HeapPlace& place, HeapLock::For what);

}  // namespace farheap::api
