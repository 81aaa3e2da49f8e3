// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who has which key: the servers by number, and the owner of each of the 16384 slots. One server alone owns them all.
// Numbers are never used again.
//
// Thread-safety: any thread; also after a fork while another thread was inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "store/fork_lock.hpp"
#include "store/redis/keys.hpp"
#include "store/redis/place.hpp"
#include "store/redis/replies.hpp"

namespace farheap::store::redis {

class Nodes {
 public:
  static constexpr unsigned kMost = 1024;
  static constexpr unsigned kNobody = kMost;

  explicit Nodes(const Place& place);

  [[nodiscard]] bool is_cluster() const { return is_cluster_; }
  [[nodiscard]] unsigned owner(std::uint16_t slot) const { return owners_[slot].load(std::memory_order_relaxed); }
  [[nodiscard]] Address address(unsigned node) const;
  [[nodiscard]] unsigned count() const { return count_.load(std::memory_order_acquire); }
  // kNobody when there are too many.
  [[nodiscard]] unsigned number_of(const Address& address);
  void set_owner(std::uint16_t slot, unsigned node);
  // Counts the changes of owners.
  [[nodiscard]] unsigned changes() const { return changes_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_primary(unsigned node) const;  // owns slots
  [[nodiscard]] std::vector<unsigned> primaries() const;
  // The answer to CLUSTER SLOTS of `asked`. False if it is none.
  [[nodiscard]] bool learn(const Reply& slots, unsigned asked);

 private:
  bool is_cluster_;
  std::atomic<unsigned> count_{0};
  std::atomic<unsigned> changes_{0};
  mutable ForkLock lock_;
  std::vector<Address> addresses_ FARHEAP_GUARDED_BY(lock_);
  std::atomic<std::uint16_t> owners_[kSlots];
};

// "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381", without the first word; an empty host is `asked`'s.
struct Redirection {
  std::uint16_t slot = 0;
  Address address;
};
[[nodiscard]] std::optional<Redirection> parse_redirection(std::string_view text, const Address& asked);

}  // namespace farheap::store::redis
