// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the checks of the contract share: the store that is tried, what was found wrong with it, clients of it with
// short forms of the calls, and clients that work at the same time. Known to contract*.cpp only.
//
// Thread-safety: Trial: any thread, but for reopen(). Client: as its store.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "store/contract.hpp"

namespace farheap::store {

using Bytes = std::vector<std::byte>;

// `count` blocks that start at `block`; every block is told from every other, and from those of another `tint`.
// Half of each block repeats, so that it can be compressed.
[[nodiscard]] Bytes make_blocks(std::uint64_t block, std::size_t count, std::size_t block_bytes,
                                std::uint64_t tint = 0);
// A block that is a number, for clients that count in it.
[[nodiscard]] std::uint64_t number_in(const Bytes& block);
void set_number(Bytes& block, std::uint64_t number);

[[nodiscard]] std::string_view name_of(Outcome outcome);

// As == of vectors says, which libstdc++ finds out byte by byte.
[[nodiscard]] bool same_bytes(std::span<const std::byte> one, std::span<const std::byte> other);

// One handle, with the calls in short. Longer runs and batches than limits() allows are split.
class Client {
 public:
  Client(Trial& trial, Store& store) : trial_(trial), store_(store), limits_(store.limits()) {}
  [[nodiscard]] Store& store() const { return store_; }
  [[nodiscard]] Bytes blocks(std::uint64_t block, std::size_t count, std::uint64_t tint = 0) const {
    return make_blocks(block, count, limits_.block_bytes, tint);
  }

  // Any other outcome than kOk, or kConflict where `expected` is given, is a fault.
  Put put(std::uint64_t block, const Bytes& bytes, std::optional<Version> expected = std::nullopt);
  void put(std::span<Put> batch);  // every outcome may be kOk or kConflict
  // Any outcome that is an error is a fault. A run is absent if any part of it is.
  Get get(std::uint64_t block, Bytes& into, Version known = 0);
  void get(std::span<Get> batch);
  // A fault unless blocks [block, block + count) are what make_blocks() makes.
  bool holds(std::uint64_t block, std::size_t count, std::uint64_t tint = 0);
  // A fault unless at least one of them is absent.
  bool lacks(std::uint64_t block, std::size_t count = 1);
  void erase(std::uint64_t first, std::uint64_t count);
  // The counter's value; a fault, and 0, if there is none.
  std::int64_t add(std::string_view counter, std::int64_t delta);
  std::uint64_t used_blocks();

 private:
  template <class Entry>
  void each_part(std::span<Entry> batch, Status (Store::*call)(std::span<Entry>));
  Trial& trial_;
  Store& store_;
  Limits limits_;
};

class Trial {
 public:
  explicit Trial(const ContractSubject& subject) : subject_(subject) {}

  [[nodiscard]] const ContractSubject& subject() const { return subject_; }
  [[nodiscard]] Store& store() const { return *store_; }
  [[nodiscard]] Client client() { return {*this, *store_}; }
  [[nodiscard]] std::size_t block_bytes() const { return subject_.options.block_bytes; }
  [[nodiscard]] bool can(Capability one) const { return has(store_->capabilities(), one); }
  [[nodiscard]] bool is_kept() const { return subject_.options.lifetime == Lifetime::kKeep; }

  // Another handle; a fault, and nullptr, if it does not open.
  std::unique_ptr<Store> open();
  // Closes the store and opens it again; false, and a fault, if it does not open.
  bool reopen();
  void let_go() { store_.reset(); }

  // True if it holds. Otherwise the words are kept, and the check may go on.
  template <class... Arguments>
  bool expect(bool holds, fmt::format_string<Arguments...> words, Arguments&&... arguments) {
    if (!holds) note(fmt::format(words, std::forward<Arguments>(arguments)...));
    return holds;
  }
  template <class Value>
  bool expect(const Result<Value>& result, std::string_view doing) {
    if (!result) note(fmt::format("{}: {}", doing, result.error().message()));
    return result.has_value();
  }
  void not_for_this_store(std::string why) { why_not_ = std::move(why); }
  // False, and the check is not for this store, unless it has the capability.
  bool needs(Capability one, std::string_view in_words);

  // `count` of them at the same time, each with a handle of its own: processes where the subject may fork.
  void run_clients(int count, const std::function<void(int, Client&)>& work);
  // `count` threads that share the store.
  void run_threads(int count, const std::function<void(int, Client&)>& work);
  // Runs `work` in a forked child; what it finds wrong is found wrong here.
  void run_child(const std::function<void()>& work);

  [[nodiscard]] ContractAnswer answer() const;

 private:
  struct Child {
    int process = -1;
    int words = -1;  // where it writes what it found wrong, a line for each
  };
  void note(std::string words);
  [[nodiscard]] std::vector<std::string> take_faults();
  [[nodiscard]] Child start_child(const std::function<void()>& work);
  void await(const Child& child);

  const ContractSubject& subject_;
  std::unique_ptr<Store> store_;
  mutable base::Mutex mutex_;
  std::vector<std::string> faults_ FARHEAP_GUARDED_BY(mutex_);
  std::string why_not_;
};

// The checks, each a line of the table in contract.cpp.
namespace contract {
// contract_blocks.cpp
void it_knows_itself(Trial&);
void fresh_is_empty(Trial&);
void put_and_get(Trial&);
void every_byte(Trial&);
void overlapping_runs(Trial&);
void far_apart(Trial&);
void erasing(Trial&);
void usage(Trial&);
void unaligned_memory(Trial&);
void parts_of_blocks(Trial&);
// contract_batches.cpp
void longest_run(Trial&);
void over_the_limits(Trial&);
void fullest_batch(Trial&);
void outcome_of_each(Trial&);
void nothing_asked(Trial&);
void gets_in_flight(Trial&);
// contract_versions.cpp
void known_versions(Trial&);
void expected_versions(Trial&);
void versions_are_new(Trial&);
void conflicts_in_a_batch(Trial&);
void one_creates(Trial&);
void one_swaps(Trial&);
// contract_sharing.cpp
void counters(Trial&);
void counter_names(Trial&);
void map_under_threads(Trial&);
void never_torn(Trial&);
void after_a_fork(Trial&);
void two_clients(Trial&);
void four_clients(Trial&);
// contract_lock.cpp
void killed_owner(Trial&);
// contract_lifetime.cpp
void kept_or_not(Trial&);
void other_block_size(Trial&);
}  // namespace contract

}  // namespace farheap::store
