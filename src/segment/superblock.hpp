// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two roots of a kept segment: blocks 0 and 1 of its store. Commit N writes block N % 2 and leaves the other one,
// which is commit N - 1, untouched; so whatever happens to a write, one of the two is whole. The newer whole one
// counts. The layout is docs/formats.md's, "A kept segment".
//
// Thread-safety: plain functions; the store's.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "farheap/store.hpp"
#include "segment/block_tree.hpp"

namespace farheap::segment {

inline constexpr std::uint32_t kSegmentFormat = 1;
inline constexpr std::uint64_t kSuperblocks = 2;

struct Superblock {
  std::array<std::byte, 16> id{};         // of the segment, for ever
  std::array<std::byte, 16> origin{};     // of a copy: the id of the segment that the line of copies began with
  std::uint64_t writer = 0;               // who wrote it: a random number of each opening
  std::uint64_t base_address = 0;         // where it is mapped in every process
  std::uint64_t capacity_pages = 0;       // of the range
  std::uint64_t commit = 0;               // counts commits
  std::uint64_t time_ns = 0;              // of this one, since 1970
  std::uint64_t end_slot = kSuperblocks;  // no slot from here on was ever taken
  std::uint64_t epoch = 0;                // how many snapshots there ever were
  std::uint64_t taken_slots = 0;          // superblocks apart
  std::uint64_t pages = 0;                // that the newest state holds
  BlockTree::Root map;                    // page -> slot; 512 pages a leaf
  BlockTree::Root space;                  // a bit a slot: taken; 32,768 slots a leaf
  BlockTree::Root snapshots;              // records, by age
  std::uint64_t snapshot_count = 0;
  BlockTree::Root dead;  // slots of the newest snapshot and older ones that are in the newest state no more
  std::uint64_t dead_count = 0;

  // Alike in a segment and all of its copies.
  [[nodiscard]] const std::array<std::byte, 16>& line() const {
    return origin == std::array<std::byte, 16>{} ? id : origin;
  }
  // Who began to create the segment was stopped before there was anything in it.
  [[nodiscard]] bool is_unfinished() const { return pages == 0 && snapshot_count == 0; }
};

struct FoundSuperblock {
  Superblock content;
  // What the store calls the two blocks now: a writer replaces these and no others. 0 where a store has no versions.
  std::array<Version, kSuperblocks> versions{};
  bool one_is_damaged = false;           // a commit that was interrupted; or else the content is the last but one
  bool other_is_the_one_before = false;  // whole; otherwise a commit may have failed there
};

// kNotFound if neither was ever written; kCorrupt if both are damaged, or the store holds something else; kUnavailable
// if it was written by a newer Farheap.
[[nodiscard]] Result<FoundSuperblock> read_superblock(Store& store);

// What one of the two says, 0 or 1. kNotFound if it was never written.
[[nodiscard]] Result<Superblock> read_one_superblock(Store& store, std::uint64_t number);

// Fills a block with what stands in the place of a superblock that is taken back where an erasure could come late
// (share/leased_store.hpp): to all who read it, it is not there.
void encode_nothing(std::span<std::byte> block);
// Whether one of the two is such a block, and nothing else.
[[nodiscard]] Result<bool> is_any_taken_back(Store& store);

// Writes it over the one of two commits ago and makes it durable; what could not be made durable is taken back.
// kConflict if somebody else wrote there meanwhile; kUnknown if nobody knows whether it was written, and reading it
// back did not tell, or if it could not be taken back.
[[nodiscard]] Status write_superblock(Store& store, const Superblock& content,
                                      std::array<Version, kSuperblocks>& versions);

// Both of a store that has none yet, so that it takes two damages to lose the state they tell of. `content` goes last:
// with it all is said. The earlier one is a commit less.
[[nodiscard]] Status write_first_superblocks(Store& store, const Superblock& content,
                                             std::array<Version, kSuperblocks> versions = {});

}  // namespace farheap::segment
