// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The keys of a store (format 1; docs/formats.md, "Stores on Redis"). NAME is the store's; what stands between the
// braces chooses the slot of a cluster.
//   farheap:{NAME:ID:GROUP}     hash: 64 blocks. "I": the bytes of block GROUP * 64 + I; "sI": its stamp, 8 bytes
//   farheap:{NAME:meta}         hash: what the store is
//   farheap:{NAME:scratch}      hash: the scratch stores below it
//   farheap:{NAME:ID:counter}:of:C  string: the counter C
//   farheap:{...}:done:LANE     string: what a lane did last there by a script: an add() and what it gave, a swap
//   farheap:{...}:beat:LANE     string: the number of the last write of a lane (beats.hpp)
//
// ID is the identity of the store: whoever still has one open that was removed and made anew writes beside the new one.
//
// Measured, 64 blocks of 4 KiB at once, then one block of 4 and 64 KiB, median microseconds over TCP on one machine:
//                                   put 64 x 4K   get 64 x 4K   put 4K   get 4K   put 64K   get 64K
//   a hash of 64, stamps beside          159           104        17.2     17.0     30.0      28.4
//   a hash of 64, stamps in the value    153           100        17.2     17.0     30.0      28.4
//   a key for each (pipelined SET/MGET)  271           101        17.2     17.0     27.9      29.4
//   a key for each (MSET/MGET)           150           101
// Stamps beside the bytes let a known block be recognised without moving it (16 us; by a script that cuts it from the
// value 23 us, of 64 KiB 100 us), and halve a compare-and-swap of 64 KiB (112 us, not 190). A hash has one key to
// find, count and remove where there would be 64.
//
// Thread-safety: plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace farheap::store::redis {

constexpr std::uint64_t kGroupBlocks = 64;
constexpr unsigned kSlots = 16384;

class Keys {
 public:
  explicit Keys(const std::string& name, const std::string& identity = {})
      : open_("farheap:{" + name + ":"), own_(open_ + identity + ":") {}
  // What all of them begin with.
  [[nodiscard]] const std::string& prefix() const { return open_; }
  // ... and those with blocks and counters.
  [[nodiscard]] const std::string& own_prefix() const { return own_; }
  [[nodiscard]] std::string meta() const { return open_ + "meta}"; }
  [[nodiscard]] std::string scratch() const { return open_ + "scratch}"; }
  [[nodiscard]] std::string counter(std::string_view name) const;
  [[nodiscard]] std::string group(std::uint64_t number) const;
  // False if it is no group of this store.
  [[nodiscard]] bool is_group(std::string_view key, std::uint64_t& number) const;

 private:
  std::string open_, own_;
};

// A key that lives where `key` does.
[[nodiscard]] std::string beside(std::string_view key, std::string_view what, std::string_view lane);

// Of a cluster: CRC16 of what is between the first braces.
// Source: https://redis.io/docs/reference/cluster-spec/
[[nodiscard]] std::uint16_t slot_of(std::string_view key);

}  // namespace farheap::store::redis
