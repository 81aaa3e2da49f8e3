// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of versions: opaque, never 0, never the same for two writes, and compared before a write in one step.
#include <atomic>
#include <set>

#include "store/contract_trial.hpp"

namespace farheap::store::contract {

void known_versions(Trial& trial) {
  Client client = trial.client();
  const auto put = client.put(2, client.blocks(2, 1));
  Bytes into(trial.block_bytes(), std::byte{0xEE});
  const auto got = client.get(2, into, put.version);
  if (!trial.can(Capability::kVersions)) {
    trial.expect(got.outcome == Outcome::kOk, "get: {}", name_of(got.outcome));
    trial.expect(got.version == 1, "without versions, what is there has version 1, not {}", got.version);
    return;
  }
  trial.expect(got.outcome == Outcome::kSame, "get of the version known: {}", name_of(got.outcome));
  trial.expect(got.version == put.version, "put gave version {}, get {}", put.version, got.version);
  trial.expect(into[0] == std::byte{0xEE}, "it was copied although it is the same");
  const auto again = client.put(2, client.blocks(2, 1, 1));
  trial.expect(again.version != put.version, "two writes have version {}", put.version);
  const auto newer = client.get(2, into, put.version).outcome;
  trial.expect(newer == Outcome::kOk, "get of a newer version: {}", name_of(newer));
  trial.expect(same_bytes(into, client.blocks(2, 1, 1)), "other bytes than were put");
  client.erase(2, 1);
  const auto gone = client.get(2, into, again.version).outcome;
  trial.expect(gone == Outcome::kAbsent, "get of what was erased: {}", name_of(gone));
}

void expected_versions(Trial& trial) {
  Client client = trial.client();
  if (!trial.can(Capability::kVersions)) {
    const auto bytes = client.blocks(2, 1);
    Put entry{.block = 2, .from = bytes, .expected = 0};
    const auto status = trial.store().put({&entry, 1});
    trial.expect(!status && status.error().code == ErrorCode::kInvalidArgument, "compare-and-swap is not refused");
    return;
  }
  const auto is = [&](const Put& entry, Outcome wanted, std::string_view which) {
    trial.expect(entry.outcome == wanted, "{}: {}, not {}", which, name_of(entry.outcome), name_of(wanted));
  };
  const auto first = client.put(2, client.blocks(2, 1, 1), 0);
  is(first, Outcome::kOk, "over nothing");
  const auto stale = client.put(2, client.blocks(2, 1, 2), 0);
  is(stale, Outcome::kConflict, "over nothing, again");
  trial.expect(stale.version == first.version, "the conflict names version {}, not {}", stale.version, first.version);
  client.holds(2, 1, 1);
  const auto second = client.put(2, client.blocks(2, 1, 3), stale.version);
  is(second, Outcome::kOk, "over the version found");
  is(client.put(2, client.blocks(2, 1, 4), first.version), Outcome::kConflict, "over a stale version");
  client.holds(2, 1, 3);
  client.erase(2, 1);
  is(client.put(2, client.blocks(2, 1, 5), second.version), Outcome::kConflict, "over a version that was erased");
  is(client.put(2, client.blocks(2, 1, 6), 0), Outcome::kOk, "over what was erased");
  client.holds(2, 1, 6);
}

// Neither what it was before, nor the same bytes, nor an erase in between brings a version back.
void versions_are_new(Trial& trial) {
  if (!trial.needs(Capability::kVersions, "it has no versions")) return;
  Client client = trial.client();
  std::set<Version> seen;
  Version last = 0;
  for (int i = 0; i < 30; ++i) {
    if (i % 10 == 9) {
      client.erase(3, 1);
      last = 0;
    }
    const auto entry = client.put(3, client.blocks(3, 1, i % 2), last);
    if (!trial.expect(entry.outcome == Outcome::kOk, "swap {}: {}", i, name_of(entry.outcome))) return;
    trial.expect(entry.version != 0 && seen.insert(entry.version).second, "version {} came twice", entry.version);
    last = entry.version;
  }
}

void conflicts_in_a_batch(Trial& trial) {
  if (!trial.needs(Capability::kVersions, "it has no versions")) return;
  Client client = trial.client();
  const auto first = client.put(10, client.blocks(10, 1));
  const auto second = client.put(11, client.blocks(11, 1));
  const Bytes bytes = client.blocks(10, 4, 1);
  const auto part = [&](std::size_t i) {
    return std::span(bytes).subspan(i * trial.block_bytes(), trial.block_bytes());
  };
  Put batch[] = {{.block = 10, .from = part(0), .expected = first.version},
                 {.block = 11, .from = part(1), .expected = first.version},
                 {.block = 12, .from = part(2), .expected = 0},
                 {.block = 13, .from = part(3)}};
  client.put(batch);
  constexpr Outcome kWanted[] = {Outcome::kOk, Outcome::kConflict, Outcome::kOk, Outcome::kOk};
  for (int i = 0; i < 4; ++i) {
    trial.expect(batch[i].outcome == kWanted[i], "entry {}: {}, not {}", i, name_of(batch[i].outcome),
                 name_of(kWanted[i]));
  }
  client.holds(10, 1, 1);
  client.holds(11, 1, 0);
  client.holds(12, 2, 1);

  Bytes into(3 * trial.block_bytes());
  const auto room = [&](std::size_t i) {
    return std::span(into).subspan(i * trial.block_bytes(), trial.block_bytes());
  };
  Get gets[] = {{.block = 10, .into = room(0), .known = first.version},
                {.block = 11, .into = room(1), .known = second.version},
                {.block = 14, .into = room(2), .known = first.version}};
  client.get(gets);
  constexpr Outcome kFound[] = {Outcome::kOk, Outcome::kSame, Outcome::kAbsent};
  for (int i = 0; i < 3; ++i) {
    trial.expect(gets[i].outcome == kFound[i], "get {}: {}, not {}", i, name_of(gets[i].outcome), name_of(kFound[i]));
  }
}

void one_creates(Trial& trial) {
  if (!trial.needs(Capability::kVersions, "it has no versions")) return;
  constexpr std::uint64_t kBlocks = 20;
  std::atomic<unsigned> winners[kBlocks] = {};
  trial.run_threads(4, [&](int me, Client& client) {
    for (std::uint64_t block = 0; block < kBlocks; ++block) {
      const auto entry = client.put(block, client.blocks(block, 1, 1u + static_cast<unsigned>(me)), 0);
      if (entry.outcome == Outcome::kOk) winners[block] += 1u << (8 * me);
    }
  });
  Client client = trial.client();
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    unsigned me = 0;
    while (me < 4 && winners[block] != 1u << (8 * me)) ++me;
    if (trial.expect(me < 4, "not one created block {}: {:#x}", block, winners[block].load())) {
      client.holds(block, 1, 1 + me);
    }
  }
}

void one_swaps(Trial& trial) {
  if (!trial.needs(Capability::kVersions, "it has no versions")) return;
  Client client = trial.client();
  client.put(9, Bytes(trial.block_bytes()));
  trial.run_threads(4, [&](int, Client& mine) {
    Bytes page(trial.block_bytes());
    for (int done = 0; done < 50;) {
      const auto got = mine.get(9, page);
      if (!trial.expect(got.outcome == Outcome::kOk, "get: {}", name_of(got.outcome))) return;
      set_number(page, number_in(page) + 1);
      const auto swapped = mine.put(9, page, got.version).outcome;
      if (swapped == Outcome::kOk) ++done;
      if (swapped != Outcome::kOk && swapped != Outcome::kConflict) return;
    }
  });
  Bytes page(trial.block_bytes());
  client.get(9, page);
  trial.expect(number_in(page) == 200, "4 threads swapped 50 times each and counted to {}", number_in(page));
}

}  // namespace farheap::store::contract
