// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/units.hpp"
#include "store/aligned_buffer.hpp"
#include "store/heap_blocks.hpp"
#include "store/marks.hpp"

namespace farheap {

static Error cannot_tell(const Store& store, const char* what) {
  return {ErrorCode::kUnavailable,
          "cannot look at the store",
          store.describe(),
          std::string("its engine does not tell which ") + what + " it has",
          {}};
}

Result<std::vector<BlockRun>> Store::runs_from(std::uint64_t /*first*/) { return fail(cannot_tell(*this, "blocks")); }
Result<std::vector<NamedCounter>> Store::counters() { return fail(cannot_tell(*this, "counters")); }

namespace store {
namespace {

constexpr char kCannotCopy[] = "cannot copy the store";

class Copier {
 public:
  Copier(Store& from, Store& to, const CopyProgress& progress, const CopyStop& stop)
      : from_(from), to_(to), progress_(progress), stop_(stop), block_bytes_(from.limits().block_bytes) {
    const Limits one = from.limits();
    const Limits two = to.limits();
    const auto least = [](std::size_t a, std::size_t b, std::size_t most) { return std::min({a, b, most}); };
    piece_blocks_ = least(one.largest_value_bytes, two.largest_value_bytes, base::kMiB) / block_bytes_;
    piece_blocks_ = std::max<std::size_t>(piece_blocks_, 1);
    const auto batch = least(one.largest_batch_bytes, two.largest_batch_bytes, 8 * base::kMiB);
    const auto operations = least(one.largest_batch_operations, two.largest_batch_operations, kMostPieces);
    pieces_ = std::clamp<std::size_t>(batch / (piece_blocks_ * block_bytes_), 1, operations);
  }

  Result<Copied> run() {
    if (auto usage = from_.usage()) total_ = usage->blocks * block_bytes_;
    buffer_ = std::make_unique<AlignedBuffer>(pieces_ * piece_blocks_ * block_bytes_);
    if (!buffer_->is_there()) return fail(ErrorCode::kNoSpace, kCannotCopy, from_.describe(), "no memory");
    if (auto first = from_.runs_from(0); !first) return fail(std::move(first.error()));  // it cannot tell
    auto done = put_mark(to_, Mark::kUnfinishedCopy, kCannotCopy);
    if (done) done = range(kRoots, kFirstLease);
    if (done) done = counters();
    if (done) done = to_.sync();
    if (done) done = range(1, kRoots);
    if (done) done = to_.sync();
    if (done) done = unmark();
    if (done) done = to_.sync();
    if (!done) return fail(std::move(done.error()));
    return copied_;
  }

 private:
  static constexpr std::size_t kMostPieces = 256;

  // Block 0 as it is to be, over the mark.
  Status unmark() {
    const auto before = copied_.blocks;
    if (auto done = range(0, 1); !done || copied_.blocks != before) return done;
    return to_.erase(0, 1);
  }

  Status range(std::uint64_t first, std::uint64_t end) {
    while (first < end) {
      auto runs = from_.runs_from(first);
      if (!runs) return fail(std::move(runs.error()));
      if (runs->empty()) break;
      for (const BlockRun& run : *runs) {
        for (std::uint64_t block = run.first; block < std::min(end, run.first + run.count);) {
          const auto count = std::min<std::uint64_t>(piece_blocks_, std::min(end, run.first + run.count) - block);
          waiting_.push_back({block, count});
          block += count;
          if (waiting_.size() < pieces_) continue;
          if (auto moved = move(); !moved) return moved;
        }
      }
      first = runs->back().first + runs->back().count;
    }
    return move();
  }

  // What waits.
  Status move() {
    if (waiting_.empty()) return {};
    if (stop_ && stop_()) {
      return fail(ErrorCode::kUnavailable, "the store is not copied", from_.describe(),
                  "it was broken off before the end");
    }
    std::vector<Get> gets;
    gets.reserve(waiting_.size());
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      gets.push_back({.block = waiting_[i].first,
                      .into = buffer_->part(i * piece_blocks_ * block_bytes_, waiting_[i].count * block_bytes_)});
    }
    if (auto got = from_.get(gets); !got) return got;
    std::vector<Put> puts;
    for (const Get& get : gets) {
      if (get.outcome != Outcome::kOk) {
        return fail(ErrorCode::kNotFound, kCannotCopy, from_.describe(),
                    fmt::format("block {} went away meanwhile", get.block), "copy it when nobody writes to it");
      }
      puts.push_back({.block = get.block, .from = get.into});
    }
    if (auto put = to_.put(puts); !put) return put;
    for (const BlockRun& piece : waiting_) copied_.blocks += piece.count;
    waiting_.clear();
    if (progress_) progress_(copied_.blocks * block_bytes_, total_);
    return {};
  }

  Status counters() {
    auto all = from_.counters();
    if (!all) return fail(std::move(all.error()));
    for (const NamedCounter& one : *all) {
      if (one.value == 0) continue;  // as if it were not there
      if (auto sum = to_.add(one.name, one.value); !sum) return fail(std::move(sum.error()));
      ++copied_.counters;
    }
    return {};
  }

  Store& from_;
  Store& to_;
  const CopyProgress& progress_;
  const CopyStop& stop_;
  std::size_t block_bytes_;
  std::size_t piece_blocks_ = 1;
  std::size_t pieces_ = 1;
  std::uint64_t total_ = 0;
  std::unique_ptr<AlignedBuffer> buffer_;
  std::vector<BlockRun> waiting_;
  Copied copied_;
};

}  // namespace

Result<Copied> copy_contents(Store& from, Store& to, const CopyProgress& progress, const CopyStop& stop) {
  if (from.limits().block_bytes != to.limits().block_bytes) {
    return fail(ErrorCode::kInvalidArgument, kCannotCopy, from.describe(),
                fmt::format("it has blocks of {} bytes, and {} of {}", from.limits().block_bytes, to.describe(),
                            to.limits().block_bytes));
  }
  if (auto there = to.usage(); there && there->blocks != 0) {
    return fail(ErrorCode::kConflict, kCannotCopy, to.describe(), "it is not empty",
                "name a store that is not there yet");
  }
  return Copier(from, to, progress, stop).run();
}

}  // namespace store
}  // namespace farheap
