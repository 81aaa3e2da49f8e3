// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/spanner/rows.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <charconv>
#include <cstring>

namespace farheap::engines::spanner {

std::vector<std::string> table_definitions() {
  return {
      fmt::format("CREATE TABLE IF NOT EXISTS {} (Name STRING(300) NOT NULL, Block INT64 NOT NULL, "
                  "Version INT64 NOT NULL, Page BYTES(MAX) NOT NULL) PRIMARY KEY (Name, Block)",
                  kBlocks),
      fmt::format("CREATE TABLE IF NOT EXISTS {} (Name STRING(300) NOT NULL, Counter BYTES(MAX) NOT NULL, "
                  "Value INT64 NOT NULL, Stamp INT64 NOT NULL) PRIMARY KEY (Name, Counter)",
                  kCounters),
      fmt::format("CREATE TABLE IF NOT EXISTS {} (Name STRING(300) NOT NULL, Format INT64 NOT NULL, "
                  "BlockBytes INT64 NOT NULL, Identity STRING(64) NOT NULL, Epoch INT64 NOT NULL, "
                  "Beat INT64 NOT NULL) PRIMARY KEY (Name)",
                  kStores),
  };
}

std::string base64(std::string_view text) { return base64(std::as_bytes(std::span(text.data(), text.size()))); }

std::string base64(std::span<const std::byte> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // it ends with a zero
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

bool from_base64(std::string_view text, std::span<std::byte> into) {
  if (text.size() != (into.size() + 2) / 3 * 4) return false;
  if (text.empty()) return true;
  const std::size_t padding = (3 - into.size() % 3) % 3;
  if (text.size() - (text.find_last_not_of('=') + 1) != padding) return false;
  // The last four letters may be fewer bytes than the decoder writes.
  const std::size_t whole = text.size() - 4;
  const auto* from = reinterpret_cast<const unsigned char*>(text.data());
  auto* to = reinterpret_cast<unsigned char*>(into.data());
  if (whole > 0 && EVP_DecodeBlock(to, from, static_cast<int>(whole)) < 0) return false;
  unsigned char last[3];
  if (EVP_DecodeBlock(last, from + whole, 4) < 0) return false;
  std::memcpy(to + whole / 4 * 3, last, into.size() - whole / 4 * 3);
  return true;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

void add(google::protobuf::ListValue& row, std::string_view text) {
  row.add_values()->set_string_value(std::string(text));
}

void add(google::protobuf::ListValue& row, std::int64_t number) {
  row.add_values()->set_string_value(std::to_string(number));
}

void add_name(api::KeySet& keys, std::string_view name) {
  auto& range = *keys.add_ranges();
  add(*range.mutable_start_closed(), name);
  add(*range.mutable_end_closed(), name);
}

void add_block(api::KeySet& keys, std::string_view name, std::uint64_t block) {
  auto& key = *keys.add_keys();
  add(key, name);
  add(key, spanner_number(block));
}

void add_blocks(api::KeySet& keys, std::string_view name, std::uint64_t first, std::uint64_t last) {
  if (first == last) return add_block(keys, name, first);
  auto& range = *keys.add_ranges();
  add(*range.mutable_start_closed(), name);
  add(*range.mutable_start_closed(), spanner_number(first));
  add(*range.mutable_end_closed(), name);
  add(*range.mutable_end_closed(), spanner_number(last));
}

}  // namespace farheap::engines::spanner
