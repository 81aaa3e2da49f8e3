// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rows of a store in a Bigtable table, and ReadRows' chunks put together to cells again. The layout is specified in
// docs/formats.md.
//
// Thread-safety: plain values.
#pragma once

#include <google/bigtable/v2/bigtable.pb.h>

#include <cstdint>
#include <farheap/store.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace farheap::engines::bigtable {

namespace api = google::bigtable::v2;

inline constexpr char kFamily[] = "f";
inline constexpr char kPage[] = "p";       // of a block's row: its version, 8 bytes, then its bytes
inline constexpr char kCount[] = "n";      // of a counter's row (counter.hpp)
inline constexpr char kAbout[] = "about";  // of the row that says what the store is
inline constexpr char kEpoch[] = "epoch";
inline constexpr char kBeat[] = "beat";
inline constexpr std::size_t kVersionBytes = sizeof(Version);

// The keys of a store begin with its prefix: "NAME/", or of a scratch store "NAME/s/ID/".
struct Keys {
  std::string prefix;
  [[nodiscard]] std::string about() const { return prefix + "m"; }
  [[nodiscard]] std::string counter(std::string_view name) const { return prefix + "c/" + std::string(name); }
  [[nodiscard]] std::string block(std::uint64_t number) const;
  [[nodiscard]] std::string blocks() const { return prefix + "b/"; }
  [[nodiscard]] std::string counters() const { return prefix + "c/"; }
  [[nodiscard]] std::string scratch(std::string_view id) const { return prefix + "s/" + std::string(id) + "/"; }
  [[nodiscard]] std::string beats() const { return prefix + "t/"; }
  [[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view key) const;  // of a block's key
};

// The first key behind all that begin with `prefix`, which must end in a character that is not the last one.
[[nodiscard]] std::string behind(std::string prefix);

// Versions and numbers are big-endian in cells, as Bigtable's own counters are.
[[nodiscard]] std::string number_bytes(std::uint64_t number);
[[nodiscard]] std::uint64_t number_in(std::string_view bytes);  // Requires: 8 of them

// Bigtable wants whole milliseconds, in microseconds: one of its milliseconds is one microsecond of ours, because a
// clock that many processes write by must be finer than a write takes.
[[nodiscard]] std::int64_t cell_time_of(Version version);

// What becomes of the cells of an answer. A cell comes in one or more pieces.
class CellTaker {
 public:
  virtual ~CellTaker() = default;
  virtual void begin(std::string_view key, std::string_view column, std::int64_t time) = 0;
  virtual void piece(std::string_view bytes) = 0;
  virtual void end() = 0;
  virtual void forget_row() = 0;  // all of it will come again
};

// Feeds one stream of answers to a taker.
class ChunkReader {
 public:
  explicit ChunkReader(CellTaker& taker) : taker_(taker) {}
  void take(const api::ReadRowsResponse& response);

 private:
  CellTaker& taker_;
  std::string key_;
  std::string column_;
  bool inside_cell_ = false;
};

// A few rows, whole.
struct Cell {
  std::string column;
  std::int64_t time = 0;
  std::string value;
};
struct Row {
  std::string key;
  std::vector<Cell> cells;
  [[nodiscard]] const Cell* find(std::string_view column) const;
};
class RowsTaker final : public CellTaker {
 public:
  void begin(std::string_view key, std::string_view column, std::int64_t time) override;
  void piece(std::string_view bytes) override { rows_.back().cells.back().value += bytes; }
  void end() override {}
  void forget_row() override;
  [[nodiscard]] std::vector<Row>& rows() { return rows_; }

 private:
  std::vector<Row> rows_;
};

// ---- filters and mutations

// The newest cell of a column; `in_values` also that its value begins with this version.
void newest_of(api::RowFilter& filter, std::string_view column);
void newest_is(api::RowFilter& filter, std::string_view column, Version version);
// Sets a cell, and takes what is older away.
template <class Mutations>
void set_cell(Mutations& mutations, std::string_view column, std::int64_t time, std::string value) {
  auto& older = *mutations.Add()->mutable_delete_from_column();
  older.set_family_name(kFamily);
  older.set_column_qualifier(std::string(column));
  older.mutable_time_range()->set_end_timestamp_micros(time);
  auto& cell = *mutations.Add()->mutable_set_cell();
  cell.set_family_name(kFamily);
  cell.set_column_qualifier(std::string(column));
  cell.set_timestamp_micros(time);
  cell.set_value(std::move(value));
}

}  // namespace farheap::engines::bigtable
