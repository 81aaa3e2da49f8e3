// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Has an engine answer the question in a slot. What stands in the slot is a client's: it is copied before it is
// looked at, and refused where it would leave the slot's memory.
//
// Thread-safety: any thread, each with another slot.
#pragma once

#include <farheap/store.hpp>
#include <span>

#include "store/beside/protocol.hpp"

namespace farheap::engines {

// Writes the answer; the slot's state is left to the caller. Catches what the engine throws.
void answer_slot(store::beside::Slot& slot, std::span<std::byte> data, Store& engine);

}  // namespace farheap::engines
