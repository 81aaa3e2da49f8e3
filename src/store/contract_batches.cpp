// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of batches: limits are told and kept, and each entry has an outcome of its own.
#include <poll.h>

#include <algorithm>

#include "store/aligned_buffer.hpp"
#include "store/contract_trial.hpp"

namespace farheap::store::contract {
namespace {

void is_refused(Trial& trial, const Status& status, std::string_view what) {
  if (!trial.expect(!status, "{} was taken", what)) return;
  trial.expect(status.error().code == ErrorCode::kInvalidArgument, "{} was refused in wrong words: {}", what,
               status.error().message());
}

}  // namespace

void longest_run(Trial& trial) {
  Client client = trial.client();
  const auto limits = trial.store().limits();
  const std::size_t most = limits.largest_value_bytes / limits.block_bytes;
  client.put(3, client.blocks(3, most));
  client.holds(3, most);
  const Bytes longer(limits.largest_value_bytes + limits.block_bytes);
  Put entry{.block = 0, .from = longer};
  is_refused(trial, trial.store().put({&entry, 1}), "an entry longer than the longest");
  trial.expect(entry.outcome == Outcome::kFailed, "its outcome: {}", name_of(entry.outcome));
  client.holds(3, most);
}

void over_the_limits(Trial& trial) {
  Client client = trial.client();
  const auto limits = trial.store().limits();
  Bytes bytes = client.blocks(0, 1);
  std::vector<Put> batch(limits.largest_batch_operations + 1);
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = {.block = i, .from = bytes};
  is_refused(trial, trial.store().put(batch), "a batch of too many entries");
  client.lacks(0);
  Get odd{.block = 0, .into = std::span(bytes).first(limits.block_bytes - 1)};
  is_refused(trial, trial.store().get({&odd, 1}), "a part of a block");
  trial.expect(odd.outcome == Outcome::kFailed, "its outcome: {}", name_of(odd.outcome));
}

// As many single blocks as one call may have, or 16 MiB of them.
void fullest_batch(Trial& trial) {
  Client client = trial.client();
  const auto limits = trial.store().limits();
  const std::size_t room = std::min<std::size_t>(limits.largest_batch_bytes, 16u << 20);
  const std::size_t count = std::clamp<std::size_t>(room / limits.block_bytes, 1, limits.largest_batch_operations);
  const Bytes from = client.blocks(0, count);
  Bytes into(from.size());
  std::vector<Put> puts(count);
  std::vector<Get> gets(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t last = count - 1 - i;
    puts[i] = {.block = last, .from = std::span(from).subspan(last * limits.block_bytes, limits.block_bytes)};
    gets[i] = {.block = i, .into = std::span(into).subspan(i * limits.block_bytes, limits.block_bytes)};
  }
  trial.expect(trial.store().put(puts), fmt::format("a batch of {} puts", count));
  trial.expect(trial.store().get(gets), fmt::format("a batch of {} gets", count));
  const auto is_done = [](const auto& entry) { return entry.outcome == Outcome::kOk; };
  trial.expect(std::ranges::all_of(puts, is_done) && std::ranges::all_of(gets, is_done), "not all of {} are done",
               count);
  trial.expect(same_bytes(into, from), "other bytes than were put");
}

void outcome_of_each(Trial& trial) {
  Client client = trial.client();
  constexpr std::size_t kRuns = 100;
  const std::size_t size = trial.block_bytes();
  const std::size_t longest = std::min<std::size_t>(4, trial.store().limits().largest_value_bytes / size);
  std::vector<Bytes> bytes;
  std::vector<Put> puts;
  for (std::size_t i = 0; i < kRuns; ++i) bytes.push_back(client.blocks(i * 10, 1 + i % longest));
  for (std::size_t i = 0; i < kRuns; ++i) puts.push_back({.block = i * 10, .from = bytes[i]});
  client.put(puts);

  std::vector<Bytes> into;
  std::vector<Get> gets;
  for (std::size_t i = 0; i < kRuns; ++i) into.emplace_back(bytes[i].size());
  for (std::size_t i = 0; i < kRuns; ++i) gets.push_back({.block = i * 10 + (i % 7 == 0 ? 5 : 0), .into = into[i]});
  client.get(gets);
  for (std::size_t i = 0; i < kRuns; ++i) {
    const auto wanted = i % 7 == 0 ? Outcome::kAbsent : Outcome::kOk;
    trial.expect(gets[i].outcome == wanted, "entry {}: {}, not {}", i, name_of(gets[i].outcome), name_of(wanted));
    if (i % 7 != 0) trial.expect(same_bytes(into[i], bytes[i]), "entry {} has the bytes of another", i);
  }
}

void nothing_asked(Trial& trial) {
  Client client = trial.client();
  client.put(0, client.blocks(0, 2));
  trial.expect(trial.store().get({}), "a batch of no gets");
  trial.expect(trial.store().put({}), "a batch of no puts");
  trial.expect(trial.store().erase(0, 0), "erase of nothing");
  client.holds(0, 2);
}

void gets_in_flight(Trial& trial) {
  constexpr unsigned kMost = 8;
  const auto flying = trial.store().gets_in_flight(kMost);
  if (flying == nullptr) return trial.not_for_this_store("its answers have to be waited for");
  Client client = trial.client();
  const std::size_t size = trial.block_bytes();
  client.put(0, client.blocks(0, 6));
  AlignedBuffer into(kMost * size);  // some fly into aligned memory only
  const auto room = [&](std::uint64_t i) { return into.part(i * size, size); };
  Get gets[kMost];
  for (int round = 0; round < 3; ++round) {
    unsigned begun = 0;
    for (unsigned i = 0; i < kMost; ++i) {
      gets[i] = {.block = i, .into = room(i)};
      std::ranges::fill(gets[i].into, std::byte{0xEE});
      begun += flying->begin(gets[i]) ? 1 : 0;
    }
    trial.expect(begun > 0, "none of {} was begun", kMost);
    for (unsigned taken = 0; taken < begun;) {
      pollfd ready{flying->descriptor(), POLLIN, 0};
      if (!trial.expect(poll(&ready, 1, 60'000) > 0, "no answer in a minute")) return;
      for (const Get* one; (one = flying->take()) != nullptr; ++taken) {
        const bool there = one->block < 6;
        trial.expect(one->outcome == (there ? Outcome::kOk : Outcome::kAbsent), "block {}: {}", one->block,
                     name_of(one->outcome));
        const auto wanted = client.blocks(one->block, 1);
        if (there) trial.expect(same_bytes(one->into, wanted), "block {} is another", one->block);
      }
    }
    trial.expect(flying->take() == nullptr, "an answer to nothing");
  }
}

}  // namespace farheap::store::contract
