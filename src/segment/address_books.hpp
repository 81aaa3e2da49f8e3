// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is known of a segment's addresses, apart from the pages behind them:
//
//              handed out   accessible   may hold memory   counts against the budget
//   free       no           perhaps      no                no
//   counted    yes          perhaps      yes               yes
//   reserved   yes          no           no                no
//
// A program that reserves addresses (PROT_NONE) and opens them piece by piece (mprotect, MAP_FIXED) has reserved ones,
// which become counted when they are opened and reserved again when they are shut and emptied. Reservations come from
// the upper quarter, so that they do not tear the rest into pieces.
//
// Foreign are reserved ones that the program has mapped to something else: a file, shared memory. They are not shut.
//
// Shut are the addresses that are known to be PROT_NONE. Of free ones that says that the next owner has to open them.
//
// Thread-safety: none; the owner locks. Changes allocate: only as the runtime (base::InsideRuntime).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "segment/address_set.hpp"
#include "segment/run_allocator.hpp"

namespace farheap::segment {

class AddressBooks {
 public:
  // All is free, and the upper quarter is shut. Requires: base and bytes are multiples of 16 KiB.
  AddressBooks(std::byte* base, std::size_t bytes);

  [[nodiscard]] std::byte* first_reservation() const { return middle_; }
  [[nodiscard]] bool is_for_reservations(const std::byte* at) const { return at >= middle_; }

  // Free addresses become counted. Requirements and failures: see RunAllocator.
  [[nodiscard]] std::byte* obtain(std::size_t bytes, std::size_t alignment) { return runs_.obtain(bytes, alignment); }
  [[nodiscard]] bool obtain_at(std::byte* at, std::size_t bytes) { return area(at).obtain_at(at, bytes); }
  void give_back(std::byte* at, std::size_t bytes) { area(at).give_back(at, bytes); }
  // Free ones of the upper quarter become reserved. They are shut.
  [[nodiscard]] std::byte* reserve(std::size_t bytes);

  // Whatever [at, at + bytes) was, it is from now on: counted and accessible; handed out and shut (and empty: that is,
  // reserved); free (and shut).
  void note_open(std::byte* at, std::size_t bytes);
  void note_shut(std::byte* at, std::size_t bytes, bool empty);
  void note_free(std::byte* at, std::size_t bytes, bool shut);
  // What the range holds was dropped: as far as it is shut, it is reserved now.
  void note_empty(std::byte* at, std::size_t bytes);
  void note_foreign(std::byte* at, std::size_t bytes);
  // ... and now it is mapped anew.
  void note_own(std::byte* at, std::size_t bytes) { foreign_.remove(at, bytes); }

  [[nodiscard]] bool is_handed_out(std::byte* at, std::size_t bytes) const;
  [[nodiscard]] bool is_reserved(std::byte* at, std::size_t bytes) const {
    return reserved_.overlap(at, bytes) == bytes;
  }
  [[nodiscard]] bool is_shut(std::byte* at, std::size_t bytes) const { return shut_.overlap(at, bytes) == bytes; }
  [[nodiscard]] bool is_open(std::byte* at, std::size_t bytes) const { return shut_.overlap(at, bytes) == 0; }
  [[nodiscard]] bool is_foreign(std::byte* at, std::size_t bytes) const { return foreign_.overlap(at, bytes) == bytes; }
  // No part of it is foreign.
  [[nodiscard]] bool is_own(std::byte* at, std::size_t bytes) const { return foreign_.overlap(at, bytes) == 0; }
  // Each is a mapping of the kernel's, and so is what lies between two.
  [[nodiscard]] std::size_t shut_runs() const { return shut_.run_count(); }

  [[nodiscard]] std::size_t counted_bytes() const;
  // By how much opening the range would raise that.
  [[nodiscard]] std::size_t bytes_to_count(std::byte* at, std::size_t bytes) const;
  using Runs = std::vector<std::pair<std::byte*, std::size_t>>;
  // What may hold memory.
  [[nodiscard]] Runs counted_runs() const;
  // The rest: what is free, and what is reserved and not foreign. In whole it takes in the range but what is foreign.
  [[nodiscard]] Runs empty_runs() const;
  // The parts of a range that are foreign, and those that are not.
  void split(std::byte* at, std::size_t bytes, Runs& foreign, Runs& own) const;
  // All but what is foreign.
  [[nodiscard]] Runs own_runs() const;

 private:
  [[nodiscard]] RunAllocator& area(const std::byte* at) { return at < middle_ ? runs_ : reservations_; }
  // Calls visit(allocator, at, bytes) for the parts of the range on both sides of the middle.
  template <class Self, class Visit>
  static void in_areas(Self& self, std::byte* at, std::size_t bytes, const Visit& visit);
  void take_free(std::byte* at, std::size_t bytes);

  std::byte* base_;
  std::byte* middle_;
  std::byte* end_;
  RunAllocator runs_;
  RunAllocator reservations_;
  AddressSet reserved_;
  AddressSet shut_;
  AddressSet foreign_;
};

}  // namespace farheap::segment
