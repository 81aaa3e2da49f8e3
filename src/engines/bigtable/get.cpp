// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/bigtable/get.hpp"

#include <algorithm>
#include <cstring>

#include "engines/grpc/streams.hpp"
#include "engines/space/wanted.hpp"

namespace farheap::engines::bigtable {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::size_t kMostKnown = 64;  // versions in the filter of one request
constexpr std::size_t kReadsInFlight = 4;

struct Wanted : WantedBlock {
  bool again = false;  // it is there, but not as one that was known
};

// Puts the cells of one request in their places: `wanted` is sorted by block, and so is the answer.
class BlockTaker final : public CellTaker {
 public:
  BlockTaker(std::span<Wanted> wanted, const Keys& keys, std::size_t block_bytes)
      : wanted_(wanted), keys_(keys), block_bytes_(block_bytes) {}

  void begin(std::string_view key, std::string_view /*column*/, std::int64_t time) override {
    const auto number = keys_.number_of(key);
    here_ = {};
    if (number) {
      const auto found = std::ranges::equal_range(wanted_, *number, {}, &Wanted::block);
      here_ = {found.begin(), found.end()};
    }
    time_ = time;
    bytes_ = 0;
  }
  void piece(std::string_view bytes) override {
    if (here_.empty()) return;
    while (!bytes.empty() && bytes_ < kVersionBytes) {
      header_[bytes_++] = bytes.front();
      bytes.remove_prefix(1);
    }
    const auto at = bytes_ - std::min(bytes_, kVersionBytes);
    if (at + bytes.size() <= block_bytes_) std::memcpy(here_.front().to + at, bytes.data(), bytes.size());
    bytes_ += bytes.size();
  }
  void end() override {
    for (auto& wanted : here_) {
      if (bytes_ == 0) {  // the filter took it away because its version is one of those known
        if (wanted.known != 0 && cell_time_of(wanted.known) == time_) {
          wanted.outcome = Outcome::kSame, wanted.version = wanted.known;
        } else {
          wanted.known = 0, wanted.again = true;  // that version is known of another block
        }
        continue;
      }
      if (bytes_ < kVersionBytes) {
        wanted.outcome = Outcome::kCorrupt;
        continue;
      }
      wanted.version = number_in({header_, kVersionBytes});
      wanted.outcome = bytes_ == kVersionBytes                  ? Outcome::kAbsent  // erased
                       : bytes_ == kVersionBytes + block_bytes_ ? Outcome::kOk
                                                                : Outcome::kCorrupt;
      if (&wanted != here_.data() && wanted.outcome == Outcome::kOk) {
        std::memcpy(wanted.to, here_.front().to, block_bytes_);
      }
    }
  }
  void forget_row() override {
    for (auto& wanted : here_) wanted.outcome = Outcome::kPending;
  }

 private:
  std::span<Wanted> wanted_;
  const Keys& keys_;
  std::size_t block_bytes_;
  std::span<Wanted> here_;
  std::int64_t time_ = 0;
  std::size_t bytes_ = 0;
  char header_[kVersionBytes] = {};
};

void add_rows(api::RowSet& rows, std::span<const Wanted> wanted, const Keys& keys) {
  for (std::size_t i = 0; i < wanted.size();) {
    std::size_t end = i + 1;
    while (end < wanted.size() && wanted[end].block - wanted[end - 1].block <= 1) ++end;
    if (wanted[end - 1].block == wanted[i].block) {
      rows.add_row_keys(keys.block(wanted[i].block));
    } else {
      auto& range = *rows.add_row_ranges();
      range.set_start_key_closed(keys.block(wanted[i].block));
      range.set_end_key_closed(keys.block(wanted[end - 1].block));
    }
    i = end;
  }
}

// The newest cell, without its value where that has one of the versions known.
void add_filter(api::RowFilter& filter, std::span<const Wanted> wanted) {
  std::vector<Version> known;
  for (const auto& one : wanted) {
    if (one.known != 0) known.push_back(one.known);
  }
  if (known.empty()) {
    filter.set_cells_per_column_limit_filter(1);
    return;
  }
  auto& chain = *filter.mutable_chain();
  chain.add_filters()->set_cells_per_column_limit_filter(1);
  auto& condition = *chain.add_filters()->mutable_condition();
  const auto range = [](api::RowFilter& to, Version version) {
    to.mutable_value_range_filter()->set_start_value_closed(number_bytes(version));
    to.mutable_value_range_filter()->set_end_value_open(number_bytes(version + 1));
  };
  if (known.size() == 1) {
    range(*condition.mutable_predicate_filter(), known.front());
  } else {
    auto& any = *condition.mutable_predicate_filter()->mutable_interleave();
    for (const auto version : known) range(*any.add_filters(), version);
  }
  condition.mutable_true_filter()->set_strip_value_transformer(true);
  condition.mutable_false_filter()->set_pass_all_filter(true);
}

// Cuts what is sorted into requests.
std::vector<std::span<Wanted>> requests_of(std::span<Wanted> wanted, std::size_t block_bytes) {
  const std::size_t most = std::max<std::size_t>(kReadBytes / block_bytes, 1);
  std::vector<std::span<Wanted>> requests;
  while (!wanted.empty()) {
    std::size_t count = 0;
    std::size_t known = 0;
    while (count < wanted.size() && count < most && known < kMostKnown) known += wanted[count++].known != 0 ? 1 : 0;
    // The same block twice belongs into one request.
    while (count < wanted.size() && wanted[count].block == wanted[count - 1].block) ++count;
    requests.push_back(wanted.first(count));
    wanted = wanted.subspan(count);
  }
  return requests;
}

// One round of requests for what is pending. What came is settled, whatever the status.
grpc::Status read_round(Space& space, std::span<Wanted> pending, std::size_t block_bytes, Attempts& attempts) {
  const auto parts = requests_of(pending, block_bytes);
  std::vector<BlockTaker> takers;
  std::vector<ChunkReader> readers;
  takers.reserve(parts.size());
  readers.reserve(parts.size());
  for (const auto part : parts) takers.emplace_back(part, space.keys(), block_bytes);
  for (auto& taker : takers) readers.emplace_back(taker);
  api::ReadRowsRequest request;
  const auto start = [&](std::size_t i, grpc::ClientContext& context, grpc::CompletionQueue* queue, void* tag) {
    request.Clear();
    space.client().address(request);
    add_rows(*request.mutable_rows(), parts[i], space.keys());
    add_filter(*request.mutable_filter(), parts[i]);
    return space.client().stub().AsyncReadRows(&context, request, queue, tag);
  };
  const auto statuses = run_streams<api::ReadRowsResponse>(
      parts.size(), kReadsInFlight, attempts.deadline(), start,
      [&](std::size_t i, const api::ReadRowsResponse& response) { readers[i].take(response); });
  grpc::Status worst;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!statuses[i].ok()) {
      if (worst.ok() || reply_of(statuses[i]) == Reply::kRefused) worst = statuses[i];
      continue;
    }
    for (auto& wanted : parts[i]) {
      if (wanted.outcome == Outcome::kPending && !wanted.again) wanted.outcome = Outcome::kAbsent;
      wanted.again = false;
    }
  }
  return worst;
}

}  // namespace

grpc::Status get_blocks(Space& space, std::span<Get> batch) {
  const auto block_bytes = space.block_bytes();
  auto wanted = blocks_of<Wanted>(batch, block_bytes);
  auto attempts = space.client().attempts();
  std::span<Wanted> pending = wanted;
  grpc::Status status;
  std::vector<Wanted> rest;  // of the rounds after the first
  std::vector<Wanted> settled;
  for (;;) {
    status = read_round(space, pending, block_bytes, attempts);
    const bool goes_on = status.ok() || attempts.again(status);
    std::vector<Wanted> still;
    for (const auto& one : pending) (one.outcome == Outcome::kPending ? still : settled).push_back(one);
    rest = std::move(still);
    pending = rest;
    if (pending.empty() || !goes_on) break;
  }
  settled.insert(settled.end(), rest.begin(), rest.end());
  for (const auto& one : settled) space.clock().has_seen(one.version);
  settle_entries(std::span<const Wanted>(settled), block_bytes, batch);
  return pending.empty() ? grpc::Status() : status;
}

Answer<FoundVersion> find_version(Space& space, std::uint64_t block) {
  auto rows = space.client().read(row_of(space.keys().block(block)));
  if (!rows) return tl::unexpected(rows.error());
  if (rows->empty()) return FoundVersion{};
  const auto& value = rows->front().cells.front().value;
  if (value.size() < kVersionBytes) {
    return tl::unexpected(grpc::Status(grpc::StatusCode::DATA_LOSS, "a block's cell is too short"));
  }
  const FoundVersion found{number_in(value), value.size() == kVersionBytes};
  space.clock().has_seen(found.version);
  return found;
}

}  // namespace farheap::engines::bigtable
