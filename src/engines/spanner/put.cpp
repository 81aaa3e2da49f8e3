// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <map>

#include "engines/spanner/blocks.hpp"

namespace farheap::engines::spanner {
namespace {

// The versions of these blocks as the transaction sees them; what is not there is not in it.
Answer<std::map<std::uint64_t, Version>> versions_of(Space& space, Transaction& transaction,
                                                     std::span<Put* const> entries) {
  api::ReadRequest request;
  request.set_table(kBlocks);
  for (const auto* column : {"Block", "Version"}) request.add_columns(column);
  for (const auto* entry : entries) add_block(*request.mutable_key_set(), space.name(), entry->block);
  const auto rows = transaction.read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  std::map<std::uint64_t, Version> versions;
  for (const auto& row : *rows) {
    const auto block = number_in(row[0]);
    const auto version = number_in(row[1]);
    if (block && version) versions[block_of(*block)] = static_cast<Version>(*version);
  }
  return versions;
}

void add_row(api::Mutation::Write& write, const std::string& name, std::uint64_t block, Version version,
             std::span<const std::byte> page) {
  auto& row = *write.add_values();
  add(row, name);
  add(row, spanner_number(block));
  add(row, static_cast<std::int64_t>(version));
  row.add_values()->set_string_value(base64(page));
}

}  // namespace

grpc::Status put_blocks(Space& space, std::span<Put> batch) {
  const auto block_bytes = space.block_bytes();
  std::vector<Put*> swaps;
  std::size_t blocks = 0;
  for (auto& entry : batch) {
    if (entry.expected) swaps.push_back(&entry);
    blocks += entry.from.size() / block_bytes;
  }
  const Version first = space.clock().first_of(blocks);
  const auto status = space.client().transact([&](Transaction& transaction) {
    std::map<std::uint64_t, Version> present;
    if (!swaps.empty()) {
      auto found = versions_of(space, transaction, swaps);
      if (!found) return found.error();
      present = std::move(*found);
    }
    transaction.mutations.Clear();
    auto& write = *transaction.mutations.Add()->mutable_insert_or_update();
    write.set_table(kBlocks);
    for (const auto* column : {"Name", "Block", "Version", "Page"}) write.add_columns(column);
    Version version = first;
    for (auto& entry : batch) {
      entry.outcome = Outcome::kOk;
      entry.version = entry.from.size() == block_bytes ? version : 0;
      const auto found = present.contains(entry.block) ? present[entry.block] : Version{0};
      const bool is_swap = entry.expected.has_value();
      const bool is_done = is_swap && found == version;  // by a transaction whose answer was lost
      const bool is_conflict = is_swap && !is_done && found != *entry.expected;
      if (is_conflict) entry.outcome = Outcome::kConflict, entry.version = found;
      for (std::size_t at = 0; at < entry.from.size(); at += block_bytes) {
        if (!is_conflict && !is_done) {
          add_row(write, space.name(), entry.block + at / block_bytes, version, entry.from.subspan(at, block_bytes));
        }
        version += Version{1} << VersionClock::kChanceBits;
      }
    }
    if (write.values().empty()) transaction.mutations.Clear();
    return grpc::Status();
  });
  if (status.ok()) return status;
  for (auto& entry : batch) {
    entry.outcome = reply_of(status) == Reply::kUnclear                           ? Outcome::kUnknown
                    : status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? Outcome::kNoSpace
                                                                                  : Outcome::kFailed;
    entry.version = 0;
  }
  return status;
}

grpc::Status erase_blocks(Space& space, std::uint64_t first, std::uint64_t last) {
  return space.client().transact([&](Transaction& transaction) {
    transaction.mutations.Clear();
    auto& erase = *transaction.mutations.Add()->mutable_delete_();
    erase.set_table(kBlocks);
    add_blocks(*erase.mutable_key_set(), space.name(), first, last);
    return grpc::Status();
  });
}

Answer<std::int64_t> add_to(Space& space, std::string_view counter, std::int64_t delta) {
  const auto stamp = static_cast<std::int64_t>(space.clock().next());
  const auto read = [&] {
    api::ReadRequest request;
    request.set_table(kCounters);
    for (const auto* column : {"Value", "Stamp"}) request.add_columns(column);
    auto& key = *request.mutable_key_set()->add_keys();
    add(key, space.name());
    add(key, base64(counter));
    return request;
  };
  if (delta == 0) {
    const auto rows = space.client().read(read());
    if (!rows) return tl::unexpected(rows.error());
    return rows->empty() ? 0 : number_in(rows->front()[0]).value_or(0);
  }
  std::int64_t value = 0;
  const auto status = space.client().transact([&](Transaction& transaction) {
    const auto rows = transaction.read(read());
    if (!rows) return rows.error();
    const bool is_there = !rows->empty();
    value = is_there ? number_in(rows->front()[0]).value_or(0) : 0;
    transaction.mutations.Clear();
    if (is_there && number_in(rows->front()[1]) == stamp) return grpc::Status();  // its answer was lost
    value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + static_cast<std::uint64_t>(delta));
    auto& write = *transaction.mutations.Add()->mutable_insert_or_update();
    write.set_table(kCounters);
    for (const auto* column : {"Name", "Counter", "Value", "Stamp"}) write.add_columns(column);
    auto& row = *write.add_values();
    add(row, space.name());
    add(row, base64(counter));
    add(row, value);
    add(row, stamp);
    return grpc::Status();
  });
  if (!status.ok()) return tl::unexpected(status);
  return value;
}

}  // namespace farheap::engines::spanner
