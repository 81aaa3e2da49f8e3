// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engines/etcd/blocks.hpp"

#include <algorithm>
#include <cstring>

#include "engines/etcd/rounds.hpp"
#include "store/contents.hpp"

namespace farheap::engines::etcd {
namespace {

constexpr std::size_t kAnswerBytes = std::size_t{1} << 20;  // of one transaction of gets

// A run of one entry, or a part of it, that is one operation.
template <class Entry>
struct Run {
  Entry* entry;
  std::uint64_t first;
  std::size_t count;
  std::size_t at;  // in the entry's bytes
};

// The runs of one transaction.
template <class Entry>
using Part = std::vector<Run<Entry>>;

// Runs of at most `longest` blocks, in parts of at most so many operations and bytes.
template <class Entry>
class Parts {
 public:
  Parts(std::size_t block_bytes, std::size_t longest, std::size_t most_bytes)
      : block_bytes_(block_bytes), longest_(std::max<std::size_t>(longest, 1)), most_bytes_(most_bytes) {}

  void add(Entry& entry, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t count = std::min(longest_, (bytes - at) / block_bytes_);
      if (all_.empty() || all_.back().size() + kOverhead > kMostOperations ||
          part_bytes_ + count * block_bytes_ > most_bytes_) {
        all_.emplace_back();
        part_bytes_ = 0;
      }
      all_.back().push_back({&entry, entry.block + at / block_bytes_, count, at});
      part_bytes_ += count * block_bytes_;
      at += count * block_bytes_;
    }
  }
  [[nodiscard]] const std::vector<Part<Entry>>& all() const { return all_; }

 private:
  static constexpr std::size_t kOverhead = 4;
  std::size_t block_bytes_;
  std::size_t longest_;
  std::size_t most_bytes_;
  std::size_t part_bytes_ = 0;
  std::vector<Part<Entry>> all_;
};

void set_range(const Keys& keys, std::uint64_t first, std::uint64_t last, api::RangeRequest& range) {
  range.set_key(keys.block(first));
  if (last != first) range.set_range_end(last == ~std::uint64_t{0} ? behind(keys.blocks()) : keys.block(last + 1));
}

// A run of one entry as it came.
void take_run(const Keys& keys, std::size_t block_bytes, const Run<Get>& run, const api::RangeResponse& found) {
  auto& entry = *run.entry;
  const auto is = [&](Outcome outcome) { entry.outcome = std::max(entry.outcome, outcome); };
  const bool is_single = entry.into.size() == block_bytes;
  if (is_single && entry.known != 0 && found.count() > 0 && found.kvs_size() == 0) {
    entry.version = entry.known;
    return is(Outcome::kSame);
  }
  for (const auto& kv : found.kvs()) {
    const auto index = keys.number_of(kv.key()) - run.first;
    if (kv.value().size() != block_bytes || index >= run.count) return is(Outcome::kCorrupt);
    std::memcpy(entry.into.data() + run.at + index * block_bytes, kv.value().data(), block_bytes);
    if (is_single) entry.version = static_cast<Version>(kv.mod_revision());
  }
  is(static_cast<std::size_t>(found.kvs_size()) == run.count ? Outcome::kOk : Outcome::kAbsent);
}

Outcome outcome_of(const grpc::Status& status, bool was_unclear) {
  if (was_unclear || status.error_code() == grpc::StatusCode::UNKNOWN) return Outcome::kUnknown;
  return is_full(status) ? Outcome::kNoSpace : Outcome::kFailed;
}

void write_plainly(Space& space, std::size_t block_bytes, std::span<Put*> entries, grpc::Status& worst) {
  Parts<Put> parts(block_bytes, 1, kMostRequestBytes);
  for (auto* entry : entries) parts.add(*entry, entry->from.size());
  const auto fill = [&](std::size_t i, api::TxnRequest& request) {
    for (const auto& run : parts.all()[i]) {
      auto& put = *request.add_success()->mutable_request_put();
      put.set_key(space.keys().block(run.first));
      put.set_value(run.entry->from.data() + run.at, block_bytes);
      put.set_lease(space.lease());
    }
  };
  const auto take = [&](std::size_t i, const api::TxnResponse& response) {
    for (const auto& run : parts.all()[i]) {
      const bool is_single = run.entry->from.size() == block_bytes;
      run.entry->version = is_single ? static_cast<Version>(response.header().revision()) : 0;
      run.entry->outcome = std::max(run.entry->outcome, Outcome::kOk);
    }
    space.has_written(parts.all()[i].size() * block_bytes);
  };
  const auto end = run_rounds(space, parts.all().size(), true, fill, take);
  for (std::size_t i = 0; i < parts.all().size(); ++i) {
    for (const auto& run : parts.all()[i]) {
      if (end.done[i]) continue;
      run.entry->outcome = std::max(run.entry->outcome, outcome_of(end.status, end.was_unclear));
      run.entry->version = 0;
    }
  }
  if (!end.status.ok()) worst = end.status;
}

void swap(Space& space, Put& entry, grpc::Status& worst) {
  const auto key = space.keys().block(entry.block);
  api::TxnRequest request;
  auto& compare = *request.add_compare();
  compare.set_key(key);
  compare.set_target(api::Compare::MOD);
  compare.set_result(api::Compare::EQUAL);
  compare.set_mod_revision(static_cast<std::int64_t>(entry.expected.value_or(0)));
  auto& put = *request.add_success()->mutable_request_put();
  put.set_key(key);
  put.set_value(entry.from.data(), entry.from.size());
  put.set_lease(space.lease());
  auto& look = *request.add_failure()->mutable_request_range();
  look.set_key(key);
  look.set_keys_only(true);
  const auto once = space.once(request);
  if (!once) {
    entry.outcome = outcome_of(once.error(), false);
    worst = once.error();
  } else if (once->done) {
    entry.outcome = Outcome::kOk;
    entry.version = static_cast<Version>(once->revision);
    space.has_written(entry.from.size());
  } else {
    entry.outcome = Outcome::kConflict;
    const auto& found = once->found(0);
    entry.version = found.kvs_size() > 0 ? static_cast<Version>(found.kvs(0).mod_revision()) : 0;
  }
}

}  // namespace

Limits Blocks::limits() const {
  return {.block_bytes = block_bytes_,
          .largest_value_bytes = std::size_t{4} << 20,
          .largest_batch_bytes = std::size_t{16} << 20,
          .largest_batch_operations = 4096,
          .best_run_bytes = std::size_t{1} << 20};
}

grpc::Status Blocks::get(std::span<Get> batch) {
  Parts<Get> parts(block_bytes_, kAnswerBytes / block_bytes_, kAnswerBytes);
  for (auto& entry : batch) {
    entry.version = 0;
    parts.add(entry, entry.into.size());
  }
  const auto fill = [&](std::size_t i, api::TxnRequest& request) {
    for (const auto& run : parts.all()[i]) {
      auto& range = *request.add_success()->mutable_request_range();
      set_range(space_.keys(), run.first, run.first + run.count - 1, range);
      if (run.entry->known != 0) range.set_min_mod_revision(static_cast<std::int64_t>(run.entry->known) + 1);
    }
  };
  const auto take = [&](std::size_t i, const api::TxnResponse& response) {
    int at = 0;
    for (const auto& run : parts.all()[i]) {
      take_run(space_.keys(), block_bytes_, run, response.responses(at++).response_range());
    }
  };
  const auto end = run_rounds(space_, parts.all().size(), false, fill, take);
  for (std::size_t i = 0; i < parts.all().size(); ++i) {
    for (const auto& run : parts.all()[i]) {
      if (!end.done[i]) run.entry->outcome = Outcome::kFailed;
    }
  }
  return end.status;
}

grpc::Status Blocks::put(std::span<Put> batch) {
  std::vector<Put*> plain;
  grpc::Status worst;
  for (auto& entry : batch) {
    entry.version = 0;
    if (!entry.expected) plain.push_back(&entry);
  }
  if (!plain.empty()) write_plainly(space_, block_bytes_, plain, worst);
  for (auto& entry : batch) {
    if (entry.expected && !space_.is_lost()) swap(space_, entry, worst);
  }
  return worst;
}

grpc::Status Blocks::erase(std::uint64_t first, std::uint64_t last) {
  const auto fill = [&](std::size_t, api::TxnRequest& request) {
    api::RangeRequest range;
    set_range(space_.keys(), first, last, range);
    auto& erased = *request.add_success()->mutable_request_delete_range();
    erased.set_key(range.key());
    erased.set_range_end(range.range_end());
  };
  return run_rounds(space_, 1, true, fill, [](std::size_t, const api::TxnResponse&) {}).status;
}

Answer<std::uint64_t> Blocks::count() {
  std::uint64_t count = 0;
  const auto fill = [&](std::size_t, api::TxnRequest& request) {
    auto& range = *request.add_success()->mutable_request_range();
    range.set_key(space_.keys().blocks());
    range.set_range_end(behind(space_.keys().blocks()));
    range.set_count_only(true);
  };
  const auto take = [&](std::size_t, const api::TxnResponse& response) {
    count = static_cast<std::uint64_t>(response.responses(0).response_range().count());
  };
  const auto end = run_rounds(space_, 1, false, fill, take);
  if (!end.status.ok()) return tl::unexpected(end.status);
  return count;
}

Answer<std::vector<BlockRun>> Blocks::runs_from(std::uint64_t first) {
  constexpr std::int64_t kAtOnce = 10000;
  std::vector<BlockRun> runs;
  const auto fill = [&](std::size_t, api::TxnRequest& request) {
    auto& range = *request.add_success()->mutable_request_range();
    range.set_key(space_.keys().block(first));
    range.set_range_end(behind(space_.keys().blocks()));
    range.set_keys_only(true);
    range.set_limit(kAtOnce);
  };
  const auto take = [&](std::size_t, const api::TxnResponse& response) {
    const auto size = space_.keys().block(0).size();
    for (const auto& kv : response.responses(0).response_range().kvs()) {
      if (kv.key().size() == size) store::add_block(runs, space_.keys().number_of(kv.key()));
    }
  };
  const auto end = run_rounds(space_, 1, false, fill, take);
  if (!end.status.ok()) return tl::unexpected(end.status);
  return runs;
}

}  // namespace farheap::engines::etcd
