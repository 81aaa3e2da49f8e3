// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which addresses of a range are free: runs of pages are obtained, extended, and given back whole or in part.
// Only free runs are written down, so a run that was obtained may be given back in any pieces. The bookkeeping
// is apart from the range (which is never touched) and comes from a source, never from malloc. One that was made in
// a kept segment, with that as its source, is never destroyed: in a new process it is attached, at the same address.
// Best fit, and the lowest address among equals: O(log free runs) for every call.
//
// Thread-safety: none; the owner locks.
#pragma once

#include <algorithm>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "segment/free_run.hpp"

namespace farheap::segment {

class RunAllocator {
 public:
  // All of [base, base + bytes) is free at first.
  // Requires: base and bytes are multiples of the page size.
  RunAllocator(std::byte* base, std::size_t bytes, base::MetadataSource& source = base::mapped_blocks()) noexcept;
  RunAllocator(const RunAllocator&) = delete;
  RunAllocator& operator=(const RunAllocator&) = delete;

  // For one whose bytes came back from an earlier process, at rest. Requires: at the same address, as are its records.
  void attach(base::MetadataSource& source) noexcept { pool_.attach(source); }
  // Before that, when it lies elsewhere than where it was written, with its records and its range.
  void move(const base::AddressShift& shift) noexcept;

  // Requires: bytes a positive multiple of the page size; alignment a power of two, at least the page size.
  // nullptr when no free run can hold it.
  [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) noexcept;

  // Takes just these addresses. False, and nothing is changed, if any of them is not free.
  [[nodiscard]] bool obtain_at(std::byte* at, std::size_t bytes) noexcept;

  // Makes [at, at + bytes), obtained before, new_bytes long in place. False if what follows it is not free.
  // Requires: new_bytes >= bytes.
  [[nodiscard]] bool extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) noexcept;

  // Stops the program if any part lies outside of the range or is free already.
  void give_back(std::byte* at, std::size_t bytes) noexcept;

  // The same for a range of which parts may be free already; returns the bytes that were not.
  // Requires: it lies in the range.
  std::size_t give_back_taken(std::byte* at, std::size_t bytes) noexcept;

  // Takes whatever is free of the range. Requires: it lies in the range.
  void take_free(std::byte* at, std::size_t bytes) noexcept;

  // Of the range, which lies in the allocator's: how much is free, and visit(at, bytes) for every run that is not.
  [[nodiscard]] std::size_t free_inside(std::byte* at, std::size_t bytes) const noexcept;
  template <class Visit>
  void for_each_taken(std::byte* at, std::size_t bytes, const Visit& visit) const;

  // For books of a kept segment, which may be damaged: whether they agree with each other; if not, why says where. They
  // have to be of this range, and nothing outside of the tables is read. Calls malloc(). Requires: no other use
  // meanwhile.
  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };
  [[nodiscard]] bool check(std::string& why, const Range& range, const Range& tables) const;

  [[nodiscard]] std::size_t free_bytes() const noexcept { return free_bytes_; }
  [[nodiscard]] std::size_t free_run_count() const noexcept { return by_address_.size(); }
  [[nodiscard]] std::size_t largest_free_run() const noexcept;

 private:
  friend struct RunBookLayout;
  using Address = std::uintptr_t;
  [[nodiscard]] static Address address_of(const std::byte* at) noexcept { return reinterpret_cast<Address>(at); }

  [[nodiscard]] FreeRun* find_fit(std::size_t bytes, std::size_t alignment) noexcept;
  [[nodiscard]] FreeRun* find_holding(Address start, Address end) noexcept;
  // The first free run that ends after `start`.
  [[nodiscard]] FreeRunsByAddress::const_iterator first_after(Address start) const noexcept;
  [[nodiscard]] bool take(FreeRun& run, Address start, Address end) noexcept;
  void resize(FreeRun& run, Address start, Address end) noexcept;
  void insert(FreeRun& run) noexcept;
  void remove(FreeRun& run) noexcept;

  Address begin_;
  Address end_;
  std::size_t free_bytes_ = 0;
  FreeRunPool pool_;  // outlives the trees: declared before them
  FreeRunsByAddress by_address_;
  FreeRunsBySize by_size_;
};

template <class Visit>
void RunAllocator::for_each_taken(std::byte* at, std::size_t bytes, const Visit& visit) const {
  auto from = reinterpret_cast<Address>(at);
  const Address end = from + bytes;
  for (auto run = first_after(from); from < end; ++run) {
    const Address stop = run == by_address_.end() ? end : std::min(end, run->start);
    if (stop > from) visit(reinterpret_cast<std::byte*>(from), stop - from);
    if (run == by_address_.end()) return;
    from = run->end;
  }
}

}  // namespace farheap::segment
