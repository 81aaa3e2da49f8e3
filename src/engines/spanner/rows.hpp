// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of stores in a Spanner database, and Spanner's values: numbers are decimal text, bytes are base64. The
// layout is specified in docs/formats.md.
//
// Thread-safety: plain values.
#pragma once

#include <google/spanner/v1/spanner.pb.h>

#include <cstdint>
#include <farheap/store.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::engines::spanner {

namespace api = google::spanner::v1;
using Value = google::protobuf::Value;
using Row = std::vector<std::string>;  // as they came: text of every column

inline constexpr char kBlocks[] = "FarheapBlocks";
inline constexpr char kCounters[] = "FarheapCounters";
inline constexpr char kStores[] = "FarheapStores";
[[nodiscard]] std::vector<std::string> table_definitions();

// Block numbers are unsigned and Spanner's are not: 0 is the lowest there, too.
[[nodiscard]] inline std::int64_t spanner_number(std::uint64_t block) {
  return static_cast<std::int64_t>(block ^ std::uint64_t{1} << 63);
}
[[nodiscard]] inline std::uint64_t block_of(std::int64_t number) {
  return static_cast<std::uint64_t>(number) ^ std::uint64_t{1} << 63;
}

[[nodiscard]] std::string base64(std::span<const std::byte> bytes);
[[nodiscard]] std::string base64(std::string_view text);
// Decodes into exactly these bytes; false if the text is not of so many.
[[nodiscard]] bool from_base64(std::string_view text, std::span<std::byte> into);
[[nodiscard]] std::optional<std::int64_t> number_in(std::string_view text);

void add(google::protobuf::ListValue& row, std::string_view text);
void add(google::protobuf::ListValue& row, std::int64_t number);

// Everything of a name, or its blocks [first, last].
void add_name(api::KeySet& keys, std::string_view name);
void add_block(api::KeySet& keys, std::string_view name, std::uint64_t block);
void add_blocks(api::KeySet& keys, std::string_view name, std::uint64_t first, std::uint64_t last);

// Puts the values of a stream together to rows again: a value may come in pieces, a row in several answers.
template <class Take>
class RowReader {
 public:
  RowReader(std::size_t columns, Take take) : columns_(columns), take_(std::move(take)) {}
  void take(api::PartialResultSet& part) {
    auto& values = *part.mutable_values();
    for (int i = 0; i < values.size(); ++i) {
      auto text = std::move(*values[i].mutable_string_value());
      if (i == 0 && is_piece_) {
        row_.back() += text;
      } else {
        row_.push_back(std::move(text));
      }
      is_piece_ = i + 1 == values.size() && part.chunked_value();
      if (row_.size() == columns_ && !is_piece_) {
        take_(row_);
        row_.clear();
      }
    }
  }

 private:
  std::size_t columns_;
  Take take_;
  Row row_;
  bool is_piece_ = false;
};

}  // namespace farheap::engines::spanner
