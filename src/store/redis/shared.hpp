// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all callers of one store share: where it is, what it must be, and what was found out on the way.
//
// Thread-safety: any thread; also after a fork while another thread was inside.
#pragma once

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/random_number.hpp"
#include "store/redis/beats.hpp"
#include "store/redis/heart.hpp"
#include "store/redis/keys.hpp"
#include "store/redis/nodes.hpp"
#include "store/redis/place.hpp"
#include "store/redis/scratch_entry.hpp"

namespace farheap::store::redis {

// A connection that was given up with a write on its way. What it sent may still be carried out: before anything else
// is written there, the server is told to forget it (CLIENT KILL).
struct Suspect {
  unsigned node;
  std::string run_id;
  std::int64_t client_id;
};

class Suspects {
 public:
  void add(Suspect suspect) {
    base::LockGuard guard(lock_);
    all_.push_back(std::move(suspect));
    count_.store(all_.size());
  }
  [[nodiscard]] bool none() const { return count_.load(std::memory_order_acquire) == 0; }
  [[nodiscard]] std::vector<Suspect> of(unsigned node) {
    std::vector<Suspect> found;
    base::LockGuard guard(lock_);
    std::ranges::copy_if(all_, std::back_inserter(found), [&](const Suspect& one) { return one.node == node; });
    return found;
  }
  void remove(const Suspect& gone) {
    base::LockGuard guard(lock_);
    std::erase_if(all_, [&](const Suspect& one) { return one.client_id == gone.client_id && one.node == gone.node; });
    count_.store(all_.size());
  }

 private:
  ForkLock lock_;
  std::atomic<std::size_t> count_{0};  // of all_: read without the lock
  std::vector<Suspect> all_ FARHEAP_GUARDED_BY(lock_);
};

struct Shared {
  Shared(Place where, const std::string& name)
      : place(std::move(where)), keys(name), client_name("farheap:" + name), nodes(place) {}

  const Place place;
  Keys keys;  // with the identity, once it is known
  const std::string client_name;
  Nodes nodes;
  Beats beats;
  Suspects suspects;
  std::string identity;  // of the namespace; empty until it is known
  ScratchEntry scratch;  // of a scratch store
  Heart heart;           // likewise

  // Unique among all that write to the store, and growing. Never 0.
  [[nodiscard]] std::uint64_t next_number() { return numbers_.fetch_add(1, std::memory_order_relaxed); }
  // In a forked child: its numbers are not its parent's.
  void renew_numbers() { numbers_.store(first_number()); }

  // Notes and beats go away by themselves, long after anybody asks for them. Not on a server that throws away first
  // what is to go away anyhow.
  [[nodiscard]] unsigned note_seconds() const {
    return may_expire_.load() ? 3600 + 2 * static_cast<unsigned>(place.patience_s) : 0;
  }
  void keep_notes() { may_expire_.store(false); }

  // What the server lost: every call fails from now on.
  void lose(std::string what) {
    base::LockGuard guard(lock_);
    if (is_lost_.load()) return;
    loss_ = std::move(what);
    is_lost_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  [[nodiscard]] Error loss() const {
    base::LockGuard guard(lock_);
    return {ErrorCode::kCorrupt, "the store lost what it had acknowledged", place.shown, loss_,
            "go back to what was kept elsewhere; docs/stores.md says how a server keeps what it acknowledges"};
  }

 private:
  // Leaves room above, so that it never wraps.
  static std::uint64_t first_number() { return (base::random_number() >> 2) + 1; }

  std::atomic<std::uint64_t> numbers_{first_number()};
  std::atomic<bool> is_lost_{false};
  std::atomic<bool> may_expire_{true};
  mutable ForkLock lock_;
  std::string loss_ FARHEAP_GUARDED_BY(lock_);  // set once, before is_lost_
};

}  // namespace farheap::store::redis
