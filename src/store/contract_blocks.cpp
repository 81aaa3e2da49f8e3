// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of single blocks and runs: what was put is got, what was erased is absent.
#include <algorithm>
#include <cstring>

#include "store/contract_trial.hpp"

namespace farheap::store::contract {

void it_knows_itself(Trial& trial) {
  const auto limits = trial.store().limits();
  trial.expect(limits.block_bytes == trial.block_bytes(), "blocks of {} bytes, not of the {} asked for",
               limits.block_bytes, trial.block_bytes());
  trial.expect(limits.largest_value_bytes >= limits.block_bytes, "an entry is too short for one block");
  trial.expect(limits.largest_value_bytes % limits.block_bytes == 0, "the longest entry is no number of blocks");
  trial.expect(limits.largest_batch_bytes >= limits.largest_value_bytes, "a batch is too small for its longest entry");
  trial.expect(limits.largest_batch_operations >= 1, "a batch has no entries");
  const auto& wanted = trial.subject().describes;
  const auto says = trial.store().describe();
  trial.expect(wanted.empty() ? !says.empty() : says == wanted, "it calls itself {}, not {}", says, wanted);
}

void fresh_is_empty(Trial& trial) {
  Client client = trial.client();
  client.lacks(0);
  client.lacks(123456);
  client.lacks(7, 9);
  client.lacks(std::uint64_t{1} << 50);
  trial.expect(client.used_blocks() == 0, "it is not empty");
  if (trial.can(Capability::kCounters)) trial.expect(client.add("hits", 0) == 0, "a counter is there");
}

void put_and_get(Trial& trial) {
  Client client = trial.client();
  const auto entry = client.put(5, client.blocks(5, 1));
  trial.expect(entry.outcome == Outcome::kOk, "put: {}", name_of(entry.outcome));
  trial.expect(entry.version != 0, "what is there has version 0, which means absent");
  Bytes into(trial.block_bytes());
  const auto got = client.get(5, into);
  trial.expect(got.outcome == Outcome::kOk, "get: {}", name_of(got.outcome));
  trial.expect(got.version == entry.version, "put gave version {}, get {}", entry.version, got.version);
  trial.expect(same_bytes(into, client.blocks(5, 1)), "other bytes than were put");
  client.lacks(4);
  client.lacks(6);
}

// Zeros, ones, and every byte that a protocol could take for an end.
void every_byte(Trial& trial) {
  Client client = trial.client();
  Bytes every(trial.block_bytes());
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = static_cast<std::byte>(i + i / 256);
  const Bytes contents[] = {Bytes(trial.block_bytes()), Bytes(trial.block_bytes(), std::byte{0xFF}), every};
  for (int turn = 0; turn < 2; ++turn) {
    for (std::uint64_t i = 0; i < 3; ++i) client.put(i, contents[(i + turn) % 3]);
    for (std::uint64_t i = 0; i < 3; ++i) {
      Bytes into(trial.block_bytes(), std::byte{0xEE});
      const auto got = client.get(i, into);
      trial.expect(got.outcome == Outcome::kOk && same_bytes(into, contents[(i + turn) % 3]),
                   "pattern {} came back changed", i);
    }
  }
}

void overlapping_runs(Trial& trial) {
  Client client = trial.client();
  client.put(10, client.blocks(10, 20));
  client.holds(10, 20);
  client.holds(13, 5);
  client.holds(29, 1);
  client.lacks(9, 2);
  client.lacks(29, 2);
  client.put(25, client.blocks(25, 10, 1));
  client.put(8, client.blocks(8, 4, 2));
  client.holds(8, 4, 2);
  client.holds(12, 13, 0);
  client.holds(25, 10, 1);
}

void far_apart(Trial& trial) {
  Client client = trial.client();
  const std::uint64_t numbers[] = {0, 255, 256, 65535, 65536, (1u << 20) - 1, 1u << 20};
  for (const auto number : numbers) client.put(number, client.blocks(number, 1));
  for (const auto number : numbers) client.holds(number, 1);
  client.lacks(254);
  client.lacks(257);
  client.lacks(65537);
  client.erase(255, 1);
  client.erase(65536, 1u << 19);
  client.lacks(255);
  client.lacks(65536);
  client.holds(256, 1);
  client.holds(65535, 1);
  client.holds((1u << 20) - 1, 2);
}

void erasing(Trial& trial) {
  Client client = trial.client();
  for (std::uint64_t block = 100; block < 300; block += 50) client.put(block, client.blocks(block, 50));
  client.erase(110, 1);
  client.lacks(110);
  client.lacks(109, 3);
  client.holds(100, 10);
  client.holds(111, 10);
  client.erase(105, 150);
  client.holds(100, 5);
  for (std::uint64_t block = 105; block < 255; ++block) client.lacks(block);
  client.holds(255, 45);
  client.erase(0, ~std::uint64_t{0});
  client.lacks(100);
  client.lacks(299);
  client.erase(5000000, 10);
  client.put(110, client.blocks(110, 2, 9));
  client.holds(110, 2, 9);
  client.lacks(109, 2);
}

void usage(Trial& trial) {
  Client client = trial.client();
  client.put(0, client.blocks(0, 64));
  client.put(32, client.blocks(32, 64));
  trial.expect(client.used_blocks() == 96, "{} blocks, not 96", client.used_blocks());
  client.erase(0, 48);
  client.erase(0, 48);
  trial.expect(client.used_blocks() == 48, "{} blocks, not 48", client.used_blocks());
}

void unaligned_memory(Trial& trial) {
  Client client = trial.client();
  const std::size_t size = trial.block_bytes();
  if (trial.store().limits().largest_value_bytes < 3 * size) {
    return trial.not_for_this_store("an entry is shorter than three blocks");
  }
  for (const std::size_t shift : {1u, 8u, 511u}) {
    Bytes from(3 * size + shift);
    const auto wanted = client.blocks(40, 3, shift);
    std::memcpy(from.data() + shift, wanted.data(), wanted.size());
    Put put{.block = 40, .from = std::span(from).subspan(shift)};
    client.put({&put, 1});
    Bytes into(2 * size + shift);
    Bytes other(size + shift);
    Get gets[] = {{.block = 41, .into = std::span(into).subspan(shift)},
                  {.block = 40, .into = std::span(other).subspan(shift)}};
    client.get(gets);
    trial.expect(std::memcmp(into.data() + shift, wanted.data() + size, 2 * size) == 0, "a run, {} bytes off", shift);
    trial.expect(std::memcmp(other.data() + shift, wanted.data(), size) == 0, "a block, {} bytes off", shift);
  }
}

// Beside a block that is absent, within one group of an engine that keeps several blocks in one value.
void parts_of_blocks(Trial& trial) {
  Client client = trial.client();
  const std::size_t size = trial.block_bytes();
  client.put(9, client.blocks(9, 2));
  Bytes into(size, std::byte{0xEE});
  if (trial.store().get_part(9, 0, std::span(into).first(1)) == Outcome::kPending) {
    trial.expect(into[0] == std::byte{0xEE}, "it says that it serves no parts, and copied one");
    return trial.not_for_this_store("it serves no parts of blocks");
  }
  const auto is_part = [&](std::uint64_t block, std::size_t offset, std::size_t bytes, std::uint64_t tint) {
    std::ranges::fill(into, std::byte{0xEE});
    const auto outcome = trial.store().get_part(block, offset, std::span(into).subspan(offset, bytes));
    trial.expect(outcome == Outcome::kOk, "{} bytes at {} of block {}: {}", bytes, offset, block, name_of(outcome));
    Bytes wanted(size, std::byte{0xEE});
    const auto whole = client.blocks(block, 1, tint);
    std::memcpy(wanted.data() + offset, whole.data() + offset, bytes);
    trial.expect(same_bytes(into, wanted), "{} bytes at {} of block {} are others, or more", bytes, offset, block);
  };
  const auto are_all = [&](std::uint64_t block, std::uint64_t tint) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{3}, size / 2, size - 8}) {
      for (const std::size_t bytes : {1u, 5u, 8u}) is_part(block, offset, bytes, tint);
    }
    is_part(block, 0, size, tint);
  };
  const auto is_absent = [&](std::uint64_t block) {
    const auto outcome = trial.store().get_part(block, 1, std::span(into).first(4));
    trial.expect(outcome == Outcome::kAbsent, "a part of block {}: {}", block, name_of(outcome));
  };
  are_all(9, 0);
  are_all(10, 0);
  for (const std::uint64_t block : {8u, 11u, 4000u}) is_absent(block);
  for (std::uint64_t tint = 1; tint < 4; ++tint) {
    client.put(10, client.blocks(10, 1, tint));
    are_all(10, tint);
  }
  client.erase(9, 1);
  is_absent(9);
  are_all(10, 3);
  client.put(8, client.blocks(8, 1, 7));
  are_all(8, 7);
  are_all(10, 3);
}

}  // namespace farheap::store::contract
