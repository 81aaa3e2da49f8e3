// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes at offsets over the blocks of a store, with some blocks in memory.
//
//   one user     blocks are written back when there are too many, or when asked
//   many users   a write changes its bytes of a block by compare-and-swap, so that others' bytes beside them stay; a
//                read asks the store for blocks that are not as they were
//
// Thread-safety: any thread; one at a time is inside, but for reads of a part of a block that the store serves so.
#pragma once

#include <farheap/store.hpp>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"

namespace farheap::share {

class FarMemory {
 public:
  enum class Users { kOne, kMany };
  // kForWrites: every read asks the store, and every write has reached it before the call returns. With one user, what
  // blocks hold is remembered all the same, so that a write to a part of one is a put and no get: nobody else writes.
  enum class Keep { kBlocks, kForWrites };
  // The store outlives it. Requires: for many users, a store with versions; at least two blocks.
  FarMemory(Store& store, Users users, std::size_t most_blocks, Keep keep = Keep::kBlocks);

  // What was never written reads as zeros.
  [[nodiscard]] Status read(std::uint64_t offset, std::span<std::byte> into);
  [[nodiscard]] Status write(std::uint64_t offset, std::span<const std::byte> from);
  [[nodiscard]] Status fill_with_zeros(std::uint64_t offset, std::uint64_t bytes);
  // Whole blocks of the store: they read as zeros afterwards, and take no space.
  [[nodiscard]] Status forget(std::uint64_t first, std::uint64_t count);
  [[nodiscard]] Status flush();

 private:
  struct Block {
    std::vector<std::byte> bytes;
    Version version = 0;  // as the store had it; 0: absent
    bool is_dirty = false;
    std::list<std::uint64_t>::iterator use;
  };
  // A part of a call that stays within what may be in memory at once.
  struct Part {
    std::uint64_t first;
    std::uint64_t count;
  };
  [[nodiscard]] Part part_at(std::uint64_t offset, std::uint64_t bytes) const;
  struct Bytes {
    std::uint64_t begin, end;
  };
  // Brings blocks in, or up to date. What will be written is whole in `written`, or read first: not what it covers.
  [[nodiscard]] Status bring(Part part, Bytes written) FARHEAP_REQUIRES(mutex_);
  // With Keep::kForWrites and one user: the block that all of these bytes are in, if it is remembered. One call of the
  // store is all that is left to do.
  [[nodiscard]] Block* remembered(std::uint64_t offset, std::uint64_t bytes) FARHEAP_REQUIRES(mutex_);
  // With Keep::kForWrites: true if the store gave these bytes of one block.
  [[nodiscard]] bool read_part(std::uint64_t offset, std::span<std::byte> into) FARHEAP_EXCLUDES(mutex_);
  [[nodiscard]] Status read_again(std::uint64_t number, Block& here) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status write_now(std::uint64_t number, Block& here) FARHEAP_REQUIRES(mutex_);
  void drop(std::uint64_t number) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status make_room(std::uint64_t blocks) FARHEAP_REQUIRES(mutex_);
  // With Keep::kForWrites, before a call returns.
  [[nodiscard]] Status write_through(Part part) FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] Status put_back(std::vector<std::uint64_t> numbers) FARHEAP_REQUIRES(mutex_);
  // Writes the part's blocks where nobody else has written; true if that was all of them.
  [[nodiscard]] Result<bool> swap(Part part) FARHEAP_REQUIRES(mutex_);
  Block& block(std::uint64_t number) FARHEAP_REQUIRES(mutex_);
  template <class Change>
  [[nodiscard]] Status change(std::uint64_t offset, std::uint64_t bytes, const Change& change);

  Store& store_;
  const Users users_;
  const std::size_t most_blocks_;
  const Keep keep_;
  const std::size_t block_bytes_;
  base::Mutex mutex_;
  std::unordered_map<std::uint64_t, Block> blocks_ FARHEAP_GUARDED_BY(mutex_);
  std::list<std::uint64_t> uses_ FARHEAP_GUARDED_BY(mutex_);  // the latest first
};

}  // namespace farheap::share
