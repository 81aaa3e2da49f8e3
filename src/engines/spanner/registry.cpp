// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/spanner/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engines/space/version_clock.hpp"

namespace farheap::engines::spanner {
namespace {

constexpr const char* kColumns[] = {"Name", "Format", "BlockBytes", "Identity", "Epoch", "Beat"};

api::ReadRequest read_stores() {
  api::ReadRequest request;
  request.set_table(kStores);
  for (const auto* column : kColumns) request.add_columns(column);
  return request;
}

api::ReadRequest read_store_of(const std::string& name) {
  auto request = read_stores();
  add(*request.mutable_key_set()->add_keys(), name);
  return request;
}

std::optional<StoreRow> store_in(const Row& row) {
  StoreRow store{.name = row[0], .about = {.identity = row[3]}};
  std::uint64_t* const numbers[] = {nullptr, &store.about.format, &store.about.block_bytes,
                                    nullptr, &store.epoch,        &store.beat};
  for (std::size_t i = 0; i < std::size(kColumns); ++i) {
    if (numbers[i] == nullptr) continue;
    const auto number = number_in(row[i]);
    if (!number) return std::nullopt;
    *numbers[i] = static_cast<std::uint64_t>(*number);
  }
  return store;
}

}  // namespace

std::uint64_t now_us() { return VersionClock().now(); }

Answer<std::optional<StoreRow>> read_store(Transaction& transaction, const std::string& name) {
  const auto rows = transaction.read(read_store_of(name));
  if (!rows) return tl::unexpected(rows.error());
  return rows->empty() ? std::nullopt : store_in(rows->front());
}

void write_store(Transaction& transaction, const StoreRow& store) {
  auto& write = *transaction.mutations.Add()->mutable_insert_or_update();
  write.set_table(kStores);
  for (const auto* column : kColumns) write.add_columns(column);
  auto& row = *write.add_values();
  const auto number = [&](std::uint64_t value) { add(row, static_cast<std::int64_t>(value)); };
  add(row, store.name), number(store.about.format), number(store.about.block_bytes);
  add(row, store.about.identity), number(store.epoch), number(store.beat);
}

grpc::Status remove_row(Client& client, const std::string& name, std::optional<std::uint64_t> beat) {
  return client.transact([&](Transaction& transaction) {
    const auto now = read_store(transaction, name);
    if (!now) return now.error();
    if (!*now || (beat && (*now)->beat != *beat)) return grpc::Status();
    for (const auto* table : {kBlocks, kCounters}) {
      auto& erase = *transaction.mutations.Add()->mutable_delete_();
      erase.set_table(table);
      add_name(*erase.mutable_key_set(), name);
    }
    auto& erase = *transaction.mutations.Add()->mutable_delete_();
    erase.set_table(kStores);
    add(*erase.mutable_key_set()->add_keys(), name);
    return grpc::Status();
  });
}

std::string Stores::shown_as(const std::string& name) const {
  auto place = client_.place();
  place.name = name;
  return place.describe();
}

Answer<std::optional<Found>> Stores::find(const StoreKey& key) {
  const auto rows = client_.read(read_store_of(row_name(key)));
  if (!rows) return tl::unexpected(rows.error());
  const auto row = rows->empty() ? std::nullopt : store_in(rows->front());
  if (!row) return std::optional<Found>();
  return Found{about_text(row->about), row->epoch};
}

Answer<std::optional<std::string>> Stores::foreign(const std::string& name) {
  api::ReadRequest any;
  any.set_table(kBlocks);
  any.add_columns("Block");
  add_name(*any.mutable_key_set(), name);
  any.set_limit(1);
  const auto rows = client_.read(std::move(any));
  if (!rows) return tl::unexpected(rows.error());
  const auto number = rows->empty() ? std::nullopt : number_in(rows->front().front());
  if (!number) return std::optional<std::string>();
  return fmt::format("block {} of no store", block_of(*number));
}

Answer<std::vector<std::string>> Stores::names() {
  auto request = read_stores();
  request.mutable_key_set()->set_all(true);
  const auto rows = client_.read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  std::vector<std::string> names;  // the rows come in their order
  for (const auto& row : *rows) {
    auto name = row[0].substr(0, row[0].find('/'));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

Answer<std::vector<Scratch>> Stores::scratch_below(const std::string& name) {
  auto request = read_stores();
  auto& range = *request.mutable_key_set()->add_ranges();
  add(*range.mutable_start_closed(), name + "/");
  add(*range.mutable_end_open(), name + "0");
  const auto rows = client_.read(std::move(request));
  if (!rows) return tl::unexpected(rows.error());
  constexpr auto kStale = static_cast<std::uint64_t>(std::chrono::microseconds(kStaleAfter).count());
  std::vector<Scratch> all;
  for (const auto& row : *rows) {
    const auto store = store_in(row);
    if (!store) continue;
    all.push_back({.id = store->name.substr(name.size() + 1),
                   .block_bytes = store->about.block_bytes,
                   .beat = store->beat,
                   .is_stale = store->beat + kStale < now_us()});
  }
  return all;
}

grpc::Status Stores::remove(const std::string& name) { return remove_row(client_, name); }

grpc::Status Stores::collect(const std::string& name, const Scratch& scratch) {
  return remove_row(client_, row_name({name, scratch.id}), scratch.beat);
}

}  // namespace farheap::engines::spanner
