// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/batch.hpp"

#include <fmt/format.h>

#include <bit>

#include "base/full_disk.hpp"

namespace farheap::store {
namespace {

ErrorCode code_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kUnknown: return ErrorCode::kUnknown;
    case Outcome::kCorrupt: return ErrorCode::kCorrupt;
    case Outcome::kNoSpace: return ErrorCode::kNoSpace;
    default: return ErrorCode::kIo;
  }
}

std::string_view words_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kUnknown: return "no answer came: it may or may not have happened";
    case Outcome::kCorrupt: return "the bytes are not those that were written";
    case Outcome::kNoSpace: return "the store is full";
    default: return "the store refused";
  }
}

bool is_on_disk(const Store& store) {
  const std::string uri = store.describe();
  return uri.find("file:") != uri.npos || uri.find("lmdb:") != uri.npos || uri.find("rocksdb:") != uri.npos;
}

std::string remedy_of(Outcome outcome, const Store& store) {
  switch (outcome) {
    case Outcome::kUnknown: return "read it back to know";
    case Outcome::kCorrupt: return "look for a failing device; go back to a snapshot";
    case Outcome::kNoSpace: return is_on_disk(store) ? base::make_room() : "make room, or use a store elsewhere";
    default: return "";
  }
}

template <class Entry>
Status summarise(std::span<const Entry> batch, bool write, const Store& store, std::string_view why) {
  for (const auto& entry : batch) {
    if (is_error(entry.outcome)) return fail(outcome_error(entry.outcome, write, store, entry.block, std::string(why)));
  }
  return {};
}

// `known` is advice: without versions it is simply not used.
bool needs_versions(const Get&) { return false; }
bool needs_versions(const Put& put) { return put.expected.has_value(); }
bool is_single_only(const Get& get) { return get.known != 0; }
bool is_single_only(const Put& put) { return put.expected.has_value(); }

template <class Entry>
std::string fault_of(std::span<Entry> batch, const Limits& limits, Capabilities capabilities) {
  if (batch.size() > limits.largest_batch_operations) {
    return fmt::format("{} entries, and a batch has at most {}", batch.size(), limits.largest_batch_operations);
  }
  std::size_t total = 0;
  for (const auto& entry : batch) {
    const auto bytes = bytes_of(entry);
    total += bytes;
    if (bytes == 0 || bytes % limits.block_bytes != 0) {
      return fmt::format("{} bytes are no multiple of the block size {}", bytes, limits.block_bytes);
    }
    if (bytes > limits.largest_value_bytes) {
      return fmt::format("{} bytes, and an entry has at most {}", bytes, limits.largest_value_bytes);
    }
    if (entry.block + bytes / limits.block_bytes < entry.block) return "the run goes beyond the last block number";
    if (is_single_only(entry) && bytes != limits.block_bytes) return "versions are compared for single blocks only";
    if (needs_versions(entry) && !has(capabilities, Capability::kVersions)) return "this store has no versions";
  }
  if (total > limits.largest_batch_bytes) {
    return fmt::format("{} bytes, and a batch has at most {}", total, limits.largest_batch_bytes);
  }
  return {};
}

template <class Entry>
Status checked(std::span<Entry> batch, const Limits& limits, Capabilities capabilities, const Store& store) {
  auto fault = fault_of(batch, limits, capabilities);
  for (auto& entry : batch) entry.outcome = fault.empty() ? Outcome::kPending : Outcome::kFailed;
  if (fault.empty()) return {};
  return fail(ErrorCode::kInvalidArgument, "not a batch for this store", store.describe(), std::move(fault));
}

}  // namespace

Error outcome_error(Outcome outcome, bool write, const Store& store, std::uint64_t block, std::string why) {
  if (why.empty()) why = words_of(outcome);
  return {code_of(outcome), fmt::format("cannot {} block {}", write ? "write" : "read", block), store.describe(),
          std::move(why), remedy_of(outcome, store)};
}

Status summary(std::span<const Get> batch, const Store& store, std::string_view why) {
  return summarise(batch, false, store, why);
}
Status summary(std::span<const Put> batch, const Store& store, std::string_view why) {
  return summarise(batch, true, store, why);
}

Status check(std::span<Get> batch, const Limits& limits, Capabilities capabilities, const Store& store) {
  return checked(batch, limits, capabilities, store);
}
Status check(std::span<Put> batch, const Limits& limits, Capabilities capabilities, const Store& store) {
  return checked(batch, limits, capabilities, store);
}

Status check_block_bytes(std::size_t block_bytes, std::string_view subject) {
  if (std::has_single_bit(block_bytes) && block_bytes >= 512 && block_bytes <= (std::size_t{2} << 20)) return {};
  return fail(ErrorCode::kInvalidArgument, "cannot open the store", std::string(subject),
              fmt::format("{} is no block size", block_bytes), "use a power of two from 512 bytes to 2 MiB");
}

}  // namespace farheap::store
