// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lease as it stands in a block of a store: docs/formats.md, "Leases in a store".
//
// Thread-safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <farheap/result.hpp>
#include <optional>
#include <span>
#include <string>

#include "os/process_name.hpp"

namespace farheap::share {

enum class LeaseUse : std::uint64_t {
  kNone = 0,   // nobody has it; the token stays
  kReads = 1,  // LeaseRecord::commit, if there is one
  kWrites = 2,
  kAlone = 3,  // writes, and nobody may read: it is being created or removed
};

struct LeaseRecord {
  static constexpr std::size_t kLongestName = 255;
  LeaseUse use = LeaseUse::kNone;
  std::uint64_t owner = 0;   // random; another one each time it is taken
  std::uint64_t token = 0;   // how often it was taken
  std::uint64_t beat = 0;    // counted up by its owner, as a sign of life
  std::uint64_t commit = 0;  // that its owner reads
  // Of a writer's lease (segment_leases.hpp). What earlier owners have sent, and what is in doubt, may still arrive at
  // blocks below the fence: its owner writes none of these. It writes none from `reserved` on before that is raised.
  std::uint64_t fence = 0;
  std::uint64_t reserved = 0;
  os::ProcessName process;  // its owner's
  std::string name;         // for people: who has it
};

// Fills the block. Requires: at least 512 bytes.
void encode(const LeaseRecord& record, std::span<std::byte> block);
// Nothing if that is no record of a lease, or not a whole one.
[[nodiscard]] std::optional<LeaseRecord> decode(std::span<const std::byte> block);

}  // namespace farheap::share
