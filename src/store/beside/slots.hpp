// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batches into slots, and answers out of them.
//
// Thread-safety: any thread, each with another slot.
#pragma once

#include <span>

#include "store/beside/connection.hpp"

namespace farheap::store::beside {

// The deadline of this thread's call goes with every question.
void write_deadline(Slot& slot);

// Requires: a batch that check() let pass, with limits() of the slot's size.
void write_batch(Connection& connection, std::uint32_t index, Operation operation, std::span<Get> batch);
void write_batch(Connection& connection, std::uint32_t index, Operation operation, std::span<Put> batch);

// Outcomes, versions, what was read, and the error of the whole.
[[nodiscard]] Status read_batch(Connection& connection, std::uint32_t index, std::span<Get> batch);
[[nodiscard]] Status read_batch(Connection& connection, std::uint32_t index, std::span<Put> batch);
// Of questions without a batch.
[[nodiscard]] Status read_status(const Slot& slot);

}  // namespace farheap::store::beside
