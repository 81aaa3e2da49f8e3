// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of a store that several use at the same time: threads, forked children, clients of their own.
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "store/contract_trial.hpp"

namespace farheap::store::contract {
namespace {

// What one thread did to the blocks that are its own, and what must be in them.
class ModelledThread {
 public:
  ModelledThread(Trial& trial, Client& client, std::uint64_t me) : trial_(trial), client_(client), me_(me) {}

  void work(std::uint64_t steps) {
    for (step_ = 1; step_ <= steps; ++step_) {
      const std::uint64_t low = random_() % kGroup;
      const std::uint64_t block = ((random_() % kGroups) * kThreads + me_) * kGroup + low;
      const std::uint64_t count = 1 + random_() % (kGroup - low);
      switch (random_() % 4) {
        case 0:
        case 1: put(block, count); break;
        case 2:
          client_.erase(block, count);
          for (auto b = block; b < block + count; ++b) model_.erase(b);
          break;
        default: get(block, count);
      }
    }
    for (const auto& [block, tint] : model_) client_.holds(block, 1, tint);
  }

  static constexpr std::uint64_t kThreads = 3;

 private:
  static constexpr std::uint64_t kGroup = 8;  // blocks side by side of one thread
  static constexpr std::uint64_t kGroups = 60;

  void put(std::uint64_t block, std::uint64_t count) {
    const auto tint = me_ << 32 | step_;
    client_.put(block, client_.blocks(block, count, tint));
    for (auto b = block; b < block + count; ++b) model_[b] = tint;
  }

  void get(std::uint64_t block, std::uint64_t count) {
    const std::size_t size = trial_.block_bytes();
    Bytes into(count * size);
    bool all = true;
    for (auto b = block; b < block + count; ++b) all = all && model_.contains(b);
    const auto wanted = all ? Outcome::kOk : Outcome::kAbsent;
    const auto outcome = client_.get(block, into).outcome;
    trial_.expect(outcome == wanted, "blocks {} + {}: {}, not {}", block, count, name_of(outcome), name_of(wanted));
    for (std::uint64_t i = 0; all && i < count; ++i) {
      const auto bytes = client_.blocks(block + i, 1, model_[block + i]);
      trial_.expect(same_bytes(bytes, std::span(into).subspan(i * size, size)), "block {} is not what was put",
                    block + i);
    }
  }

  Trial& trial_;
  Client& client_;
  const std::uint64_t me_;
  std::mt19937_64 random_{me_ + 1};
  std::map<std::uint64_t, std::uint64_t> model_;  // block -> tint
  std::uint64_t step_ = 0;
};

}  // namespace

void counters(Trial& trial) {
  if (!trial.can(Capability::kCounters)) {
    const auto sum = trial.store().add("hits", 1);
    trial.expect(!sum && sum.error().code == ErrorCode::kUnavailable, "counting is not refused");
    return;
  }
  Client client = trial.client();
  trial.expect(client.add("hits", 0) == 0, "a counter does not begin at 0");
  trial.run_threads(4, [](int, Client& mine) {
    for (int i = 0; i < 250; ++i) mine.add("hits", 1);
  });
  trial.expect(client.add("hits", 0) == 1000, "4 threads added 250 each: {}", client.add("hits", 0));
  trial.expect(client.add("other", -5) == -5, "0 and -5 are not -5");
  trial.expect(client.add("hits", 0) == 1000, "another counter was changed");
}

void counter_names(Trial& trial) {
  if (!trial.needs(Capability::kCounters, "it has no counters")) return;
  Client client = trial.client();
  const std::string names[] = {"a", "a b/c:d", "{tag}*?[x]",        "\xC3\xA4\n\t\"'\\", std::string(50, 'n'),
                               "A", "1",       std::string(49, 'n')};
  std::int64_t value = std::int64_t{1} << 40;
  for (const auto& name : names) client.add(name, value += 3);
  value = std::int64_t{1} << 40;
  for (const auto& name : names) {
    const auto found = client.add(name, 0);
    trial.expect(found == (value += 3), "counter '{}' is {}, not {}", name, found, value);
  }
  trial.expect(client.add("a", -(std::int64_t{1} << 41)) < 0, "a counter does not go below 0");
}

// Each thread has blocks of its own, interleaved with the others', so that they are neighbours.
void map_under_threads(Trial& trial) {
  trial.run_threads(ModelledThread::kThreads, [&](int me, Client& client) {
    ModelledThread(trial, client, static_cast<std::uint64_t>(me)).work(250);
  });
}

// A reader beside writers sees one of the written states of a block, never a mix.
void never_torn(Trial& trial) {
  if (!trial.needs(Capability::kLinearisable, "it does not promise this")) return;
  const std::size_t size = trial.block_bytes();
  Client client = trial.client();
  client.put(20, Bytes(size));
  std::atomic<int> writing{2};
  std::thread writers([&] {
    trial.run_threads(2, [&](int me, Client& mine) {
      for (int i = 0; i < 200; ++i) mine.put(20, Bytes(size, static_cast<std::byte>(1 + 99 * me + i % 50)));
      --writing;
    });
  });
  Bytes into(size);
  Version last = 0;
  std::byte seen{};
  while (writing > 0) {
    const auto got = client.get(20, into, last);
    if (got.outcome == Outcome::kSame) {
      if (!trial.expect(into[0] == seen, "the same version has other bytes")) break;
      continue;
    }
    if (!trial.expect(got.outcome == Outcome::kOk, "get: {}", name_of(got.outcome))) break;
    if (!trial.expect(same_bytes(into, Bytes(size, into[0])), "a block was seen half written")) break;
    if (trial.can(Capability::kVersions)) last = got.version;
    seen = into[0];
  }
  writers.join();
}

void after_a_fork(Trial& trial) {
  if (!trial.subject().may_fork) return trial.not_for_this_store("this process may not fork");
  if (!trial.can(Capability::kForks) && !trial.subject().child_may_go_on) {
    return trial.not_for_this_store("it belongs to the process that opened it");
  }
  Client client = trial.client();
  client.put(0, client.blocks(0, 32));
  trial.run_child([&] {
    client.holds(0, 32);
    Bytes first(trial.block_bytes());
    Bytes second(4 * trial.block_bytes());
    Get gets[] = {{.block = 1, .into = first}, {.block = 8, .into = second}};
    client.get(gets);
    trial.expect(same_bytes(first, client.blocks(1, 1)) && same_bytes(second, client.blocks(8, 4)),
                 "the child reads other bytes");
    client.put(1000, client.blocks(1000, 3));
    client.holds(1000, 3);
  });
  client.holds(0, 32);
}

void two_clients(Trial& trial) {
  if (!trial.needs(Capability::kManyProcesses, "it is for one process only")) return;
  const auto handle = trial.open();
  if (handle == nullptr) return;
  Client one = trial.client();
  Client two(trial, *handle);
  one.put(6, one.blocks(6, 5));
  two.holds(6, 5);
  const auto put = two.put(6, one.blocks(6, 1, 2));
  one.holds(6, 1, 2);
  const auto over = one.put(6, one.blocks(6, 1, 3), put.version).outcome;
  trial.expect(over == Outcome::kOk, "a swap over the other's version: {}", name_of(over));
  const auto stale = two.put(6, one.blocks(6, 1, 4), put.version).outcome;
  trial.expect(stale == Outcome::kConflict, "a swap over what the other has overwritten: {}", name_of(stale));
  two.erase(8, 1);
  one.lacks(8);
  for (std::uint64_t turn = 1; turn <= 20; ++turn) {
    Client& writer = turn % 2 == 0 ? one : two;
    Client& reader = turn % 2 == 0 ? two : one;
    writer.put(30, one.blocks(30, 1, turn));
    reader.holds(30, 1, turn);
    if (trial.can(Capability::kCounters)) {
      writer.add("turn", 1);
      const auto seen = reader.add("turn", 0);
      trial.expect(seen == static_cast<std::int64_t>(turn), "counted to {} and the other reads {}", turn, seen);
    }
  }
}

void four_clients(Trial& trial) {
  if (!trial.needs(Capability::kManyProcesses, "it is for one process only")) return;
  if (!trial.needs(Capability::kVersions, "it has no versions")) return;
  Client client = trial.client();
  const std::size_t size = trial.block_bytes();
  client.put(9, Bytes(size));
  trial.run_clients(4, [&](int, Client& mine) {
    for (int i = 0; i < 250 && trial.can(Capability::kCounters); ++i) mine.add("hits", 1);
    Bytes page(size);
    for (int done = 0; done < 50;) {
      const auto got = mine.get(9, page);
      if (!trial.expect(got.outcome == Outcome::kOk, "get: {}", name_of(got.outcome))) return;
      set_number(page, number_in(page) + 1);
      const auto swapped = mine.put(9, page, got.version).outcome;
      if (swapped == Outcome::kOk) ++done;
      if (swapped != Outcome::kOk && swapped != Outcome::kConflict) return;
    }
  });
  if (trial.can(Capability::kCounters)) {
    trial.expect(client.add("hits", 0) == 1000, "4 clients added 250 each: {}", client.add("hits", 0));
  }
  Bytes page(size);
  client.get(9, page);
  trial.expect(number_in(page) == 200, "4 clients swapped 50 times each and counted to {}", number_in(page));
}

}  // namespace farheap::store::contract
