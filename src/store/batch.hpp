// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every engine does with a batch before and after its own work: refuse what breaks the contract, and turn the
// outcomes into a Status.
//
// Thread-safety: plain functions.
#pragma once

#include <farheap/store.hpp>
#include <span>
#include <string_view>

namespace farheap::store {

// The bytes of one entry.
[[nodiscard]] inline std::size_t bytes_of(const Get& get) { return get.into.size(); }
[[nodiscard]] inline std::size_t bytes_of(const Put& put) { return put.from.size(); }

// The error of one entry, as the Status of its batch.
[[nodiscard]] Error outcome_error(Outcome outcome, bool write, const Store& store, std::uint64_t block,
                                  std::string why = {});

// True for outcomes that make the Status of a batch an error.
[[nodiscard]] constexpr bool is_error(Outcome outcome) { return outcome >= Outcome::kUnknown; }

// The first error among the outcomes, in words; otherwise ok. `why` explains it where the engine knows more.
[[nodiscard]] Status summary(std::span<const Get> batch, const Store& store, std::string_view why = {});
[[nodiscard]] Status summary(std::span<const Put> batch, const Store& store, std::string_view why = {});

// kInvalidArgument, every outcome kFailed, if an entry is no multiple of the block size, a batch is over the limits,
// or `known` or `expected` stand where they cannot be served (runs; engines without versions).
// Otherwise every outcome is kPending.
[[nodiscard]] Status check(std::span<Get> batch, const Limits& limits, Capabilities capabilities, const Store& store);
[[nodiscard]] Status check(std::span<Put> batch, const Limits& limits, Capabilities capabilities, const Store& store);

// kInvalidArgument unless a power of two from 512 bytes to 2 MiB.
[[nodiscard]] Status check_block_bytes(std::size_t block_bytes, std::string_view subject);

}  // namespace farheap::store
