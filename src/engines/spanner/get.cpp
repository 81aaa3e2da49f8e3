// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstring>

#include "engines/grpc/streams.hpp"
#include "engines/space/wanted.hpp"
#include "engines/spanner/blocks.hpp"

namespace farheap::engines::spanner {
namespace {

constexpr std::size_t kRequestBytes = std::size_t{1} << 20;
// Of an answer, beside its pages in base64: what the server says of the whole, and of each row.
constexpr std::size_t kOverhead = std::size_t{64} << 10;
constexpr std::size_t kOverheadOfRow = 1024;
constexpr std::size_t kInFlight = 4;

using Wanted = WantedBlock;

// Sorted blocks, of one request.
api::ReadRequest request_of(std::span<const Wanted> wanted, const std::string& name, bool with_pages) {
  api::ReadRequest request;
  request.set_table(kBlocks);
  for (const auto* column : {"Block", "Version"}) request.add_columns(column);
  if (with_pages) request.add_columns("Page");
  for (std::size_t i = 0; i < wanted.size();) {
    std::size_t end = i + 1;
    while (end < wanted.size() && wanted[end].block - wanted[end - 1].block <= 1) ++end;
    add_blocks(*request.mutable_key_set(), name, wanted[i].block, wanted[end - 1].block);
    i = end;
  }
  return request;
}

void take_row(const Row& row, std::span<Wanted> wanted, std::size_t block_bytes) {
  const auto number = number_in(row[0]);
  const auto version = number_in(row[1]);
  if (!number || !version) return;
  const std::byte* decoded = nullptr;
  for (auto& one : std::ranges::equal_range(wanted, block_of(*number), {}, &Wanted::block)) {
    one.version = static_cast<Version>(*version);
    if (row.size() == 2) {  // without pages: only what is known is settled
      if (one.known == one.version) one.outcome = Outcome::kSame;
    } else if (decoded != nullptr) {
      std::memcpy(one.to, decoded, block_bytes), one.outcome = Outcome::kOk;
    } else if (from_base64(row[2], {one.to, block_bytes})) {
      decoded = one.to, one.outcome = Outcome::kOk;
    } else {
      one.outcome = Outcome::kCorrupt;
    }
  }
}

std::vector<std::span<Wanted>> parts_of(std::span<Wanted> wanted, std::size_t row_bytes) {
  const std::size_t most = std::max<std::size_t>(kRequestBytes / row_bytes, 1);
  std::vector<std::span<Wanted>> parts;
  while (!wanted.empty()) {
    std::size_t count = std::min(most, wanted.size());
    // The same block twice belongs into one request.
    while (count < wanted.size() && wanted[count].block == wanted[count - 1].block) ++count;
    parts.push_back(wanted.first(count));
    wanted = wanted.subspan(count);
  }
  return parts;
}

// One round of requests. What came is settled, whatever the status; with pages, what did not come is absent.
grpc::Status read_round(Space& space, std::span<Wanted> pending, std::size_t block_bytes, bool with_pages,
                        Attempts& attempts) {
  auto& client = space.client();
  const auto parts = parts_of(pending, with_pages ? block_bytes : 64);
  std::vector<Sessions::Lease> sessions;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto session = client.sessions().take(attempts.deadline());
    if (!session) return session.error();
    sessions.push_back(std::move(*session));
  }
  const auto reader_of = [&](std::size_t i) {
    return RowReader(with_pages ? 3 : 2,
                     [part = parts[i], block_bytes](const Row& row) { take_row(row, part, block_bytes); });
  };
  std::vector<decltype(reader_of(0))> readers;
  readers.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) readers.push_back(reader_of(i));
  // A row is put together in memory, and its end is the server's to say.
  std::vector<std::size_t> came(parts.size());
  const auto is_too_long = [&](std::size_t i) {
    return came[i] > kOverhead + parts[i].size() * (kOverheadOfRow + (with_pages ? 2 * block_bytes : 0));
  };
  const auto statuses = run_streams<api::PartialResultSet>(
      parts.size(), kInFlight, attempts.deadline(),
      [&](std::size_t i, grpc::ClientContext& context, grpc::CompletionQueue* queue, void* tag) {
        auto request = request_of(parts[i], space.name(), with_pages);
        request.set_session(sessions[i].name());
        return client.stub().AsyncStreamingRead(&context, request, queue, tag);
      },
      [&](std::size_t i, api::PartialResultSet& response) {
        came[i] += response.ByteSizeLong();
        if (!is_too_long(i)) readers[i].take(response);
      });
  grpc::Status worst;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto status = is_too_long(i)
                            ? grpc::Status(grpc::StatusCode::DATA_LOSS, "the answer is longer than what was asked for")
                            : client.noticed(statuses[i]);
    if (!status.ok()) {
      if (worst.ok() || reply_of(status) == Reply::kRefused) worst = status;
      continue;
    }
    for (auto& one : parts[i]) {
      if (with_pages && one.outcome == Outcome::kPending) one.outcome = Outcome::kAbsent;
    }
  }
  return worst;
}

// Rounds until nothing is pending, or patience is over.
grpc::Status read_all(Space& space, std::vector<Wanted>& wanted, std::size_t block_bytes, bool with_pages) {
  auto attempts = space.client().attempts();
  for (;;) {
    const auto settled =
        std::ranges::stable_partition(wanted, [](auto& one) { return one.outcome != Outcome::kPending; });
    if (settled.empty()) return {};
    auto status = read_round(space, {settled.begin(), settled.end()}, block_bytes, with_pages, attempts);
    if (status.ok() && !with_pages) return {};
    if (!status.ok() && !attempts.again(status)) return status;
  }
}

}  // namespace

grpc::Status get_blocks(Space& space, std::span<Get> batch) {
  const auto block_bytes = space.block_bytes();
  auto wanted = engines::blocks_of(batch, block_bytes);
  // Versions first of what is known, so that no page travels in vain.
  std::vector<Wanted> known;
  std::erase_if(wanted, [&](const Wanted& one) {
    if (one.known != 0) known.push_back(one);
    return one.known != 0;
  });
  grpc::Status status;
  if (!known.empty()) status = read_all(space, known, block_bytes, false);
  wanted.insert(wanted.end(), known.begin(), known.end());
  std::ranges::stable_sort(wanted, {}, &Wanted::block);
  if (status.ok()) status = read_all(space, wanted, block_bytes, true);

  settle_entries(std::span<const Wanted>(wanted), block_bytes, batch);
  return status;
}

}  // namespace farheap::engines::spanner
