// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The store of an engine in the process `farheap-engines`, as its client has it. Each store has a process of its own,
// which forked children share.
//
// When the process ends unasked (killed, say), a kept store is opened again in a new one, and what was not answered is
// asked again: get, put, erase, sync and usage may be done twice. add() is kUnknown; so is a compare-and-swap unless
// the version found says that it did not happen. What a scratch store held is lost with the process, and a forked
// child cannot find a new one: every call fails from then on, in words.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "store/beside/connection.hpp"
#include "store/fork_lock.hpp"
#include "store/kinds.hpp"

namespace farheap::store::beside {

class BesideStore final : public Store {
 public:
  BesideStore(Opening opening, Opened opened, std::unique_ptr<Connection> connection);
  ~BesideStore() override;

  std::string describe() const override { return description_; }
  Capabilities capabilities() const override { return capabilities_; }
  Limits limits() const override { return limits_; }
  Status get(std::span<Get> batch) override;
  Status put(std::span<Put> batch) override;
  std::unique_ptr<GetsInFlight> gets_in_flight(unsigned most) override;
  Status erase(std::uint64_t first, std::uint64_t count) override;
  Result<std::int64_t> add(std::string_view counter, std::int64_t delta) override;
  Status sync() override;
  Result<StoreUsage> usage() override;
  Result<std::vector<BlockRun>> runs_from(std::uint64_t first) override;
  Result<std::vector<NamedCounter>> counters() override;

  // ---- for GetsInFlight

  // The one to ask now: made anew where the last one's process has ended, or is the parent's.
  [[nodiscard]] Result<Connection*> connection();
  // A number for an eventfd, for good: the process keeps it. kMostNotified: there are no more.
  [[nodiscard]] std::uint32_t take_notified_number();

 private:
  struct PlainQuestion {
    Operation operation;
    std::uint64_t first = 0;
    std::uint64_t number = 0;
    std::string_view text = {};
  };
  struct PlainAnswer {
    std::uint64_t result;
    std::uint64_t more;
    std::string data = {};  // what a store holds; `result` bytes
  };

  // `write` puts the question into a slot, `read` takes the answer out. kUnknown: there was none, and may_repeat is not
  // set.
  template <class Write, class Read>
  Status ask(Write write, Read read, bool may_repeat);
  template <class Entry>
  Status ask_batch(std::span<Entry> batch, Operation operation);
  Status ask_plainly(const PlainQuestion& question, bool may_repeat, PlainAnswer* answer = nullptr);
  [[nodiscard]] bool has_not_happened(std::span<const Put> batch);
  [[nodiscard]] Result<Connection*> renew(Connection* seen);
  [[nodiscard]] Result<std::unique_ptr<Connection>> start_again() FARHEAP_REQUIRES(renewing_);

  Opening opening_;
  std::string description_;
  Capabilities capabilities_;
  Limits limits_;
  int starter_;  // the process that may start engines
  std::atomic<Connection*> current_;
  ForkLock renewing_;  // held by who changes current_
  // Those of ended processes too: threads may still look at them.
  std::vector<std::unique_ptr<Connection>> connections_ FARHEAP_GUARDED_BY(renewing_);
  std::atomic<std::uint64_t> notified_{0};  // one bit a number
};

// Starts a process and opens the store in it.
[[nodiscard]] Result<std::pair<Opened, std::unique_ptr<Connection>>> open_in_process(const Opening& opening);

}  // namespace farheap::store::beside
