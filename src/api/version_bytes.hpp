// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bytes of one version of a kept heap by address, read from its store: nothing is mapped, no address is reserved.
// The store is foreign: every address is checked against the heap's range, and what is not there reads as zeros, as it
// would in the heap.
//
// Small things come through windows of 64 KiB, the granule of the allocator, so that neighbours cost no read of their
// own; at most kMostWindows of them are kept.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "farheap/store.hpp"
#include "segment/block_tree.hpp"
#include "store/aligned_buffer.hpp"

namespace farheap::api {

class VersionBytes {
 public:
  struct Range {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;  // a multiple of a page; does not reach beyond the end of addresses
    [[nodiscard]] bool holds(std::uint64_t address, std::uint64_t count) const {
      return address >= base && address - base <= bytes && count <= bytes - (address - base);
    }
  };
  // The store outlives it, and keeps what the map refers to.
  VersionBytes(Store& store, const segment::BlockTree::Root& map, Range range);

  [[nodiscard]] const Range& range() const { return range_; }
  // kCorrupt for addresses that are not the heap's, as all below.
  [[nodiscard]] Status read(std::uint64_t address, std::span<std::byte> into);
  template <class T>
  [[nodiscard]] Result<T> read_as(std::uint64_t address) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    if (Status status = read(address, std::as_writable_bytes(std::span(&value, 1))); !status) {
      return fail(std::move(status.error()));
    }
    return value;
  }
  // What stands before the next zero. kCorrupt if there is none among the first `most` bytes.
  [[nodiscard]] Result<std::string> text(std::uint64_t address, std::uint64_t most);

  // How many bytes from there on are zeros because the version holds nothing near them: 0 if that is not known. So what
  // is large and empty costs little. Requires: the address is in the range.
  [[nodiscard]] Result<std::uint64_t> zeros_from(std::uint64_t address);

  // All of a long range in order, in pieces of 1 MiB at most, past the windows.
  using Take = std::function<Status(std::span<const std::byte>)>;
  [[nodiscard]] Status stream(std::uint64_t address, std::uint64_t bytes, const Take& take);

 private:
  static constexpr std::uint64_t kWindowBytes = 64 * base::kKiB;
  static constexpr std::size_t kMostWindows = 1024;
  [[nodiscard]] Error outside(std::uint64_t address, std::uint64_t bytes) const;
  // The window's bytes from the address on.
  [[nodiscard]] Result<std::span<const std::byte>> at(std::uint64_t address);
  // Whole pages. Requires: they are in the range, `into` is aligned to a page.
  [[nodiscard]] Status read_pages(std::uint64_t first, std::uint64_t count, std::byte* into);

  Store& store_;
  segment::BlockTree map_;
  const Range range_;
  std::unordered_map<std::uint64_t, std::unique_ptr<store::AlignedBuffer>> windows_;  // by number
};

}  // namespace farheap::api
