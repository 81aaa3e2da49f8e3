// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that go through an object with a stride: the columns of a matrix that lies by rows, or a box of planes across
// all of them. The object is then so many pieces of one length (a plane each), and the same place of each piece is used
// at the same time. Pages that lie together tell nothing of such a pass; those at the same place of other pieces do.
//
// A plan says in how many pieces, not how long they are: a larger object has as many.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/object_uses.hpp"

namespace farheap::plan {

struct StridedPass {
  std::uint32_t repeats = 0;         // pieces of the object
  std::vector<std::uint32_t> times;  // at which the parts of a piece are used, which are of one size
  std::uint32_t begin = 0, end = 0;  // of the whole pass
  ObjectUses::Foreseen foreseen;     // by the pages at the same place of other pieces
};

// When a place of a piece is used, from 0 to 1: between the middles of two parts it is as between them, beyond the
// first and the last one as before them. Requires: there are parts.
[[nodiscard]] double time_at(std::span<const std::uint32_t> times, double place);

// Takes the uses of such passes out of the life's. What tells as much by the pages beside it is no such pass, and
// stays, as does what is told by neither. `near`: so early or late a use may be that counts as told.
[[nodiscard]] std::vector<StridedPass> take_strided(ObjectLife& life, std::uint32_t near);

}  // namespace farheap::plan
