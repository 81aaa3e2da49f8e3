// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of the block map share: random steps on it against a model, and forks of it.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "base/units.hpp"
#include "segment/block_map.hpp"
#include "test_pages.hpp"

namespace farheap::segment {

using base::kPageBytes;
using pager::PageNumber;
using pager::PageRun;

// One random step after another on pages [first, first + count). Returns what went wrong, or nothing.
class Worker {
 public:
  Worker(BlockMap& map, PageNumber first, std::uint32_t count, unsigned seed)
      : map_(map), first_(first), count_(count), random_(seed) {}

  std::string step() {
    const auto offset = static_cast<std::uint32_t>(random_() % count_);
    const std::uint32_t pages = 1 + static_cast<std::uint32_t>(random_()) % std::min(kMostPages, count_ - offset);
    const PageRun run{first_ + offset, pages};
    switch (random_() % 4) {
      case 0:
      case 1: return write(run);
      case 2: return read(run);
      default: return forget(run);
    }
  }
  std::string read_all() {
    for (std::uint32_t at = 0; at < count_; at += kMostPages) {
      if (auto wrong = read({first_ + at, std::min(kMostPages, count_ - at)}); !wrong.empty()) return wrong;
    }
    return {};
  }
  std::string write(PageRun run) {
    ++value_;
    for (std::uint32_t i = 0; i < run.count; ++i) {
      pages_.set(i, run.first + i, value_);
      model_[run.first + i] = value_;
    }
    const pager::Backing::Write one{run, pages_.data()};
    const Status status = map_.write({&one, 1});
    return status ? std::string() : status.error().message();
  }
  std::string read(PageRun run) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const auto known = model_.find(run.first + i);
      if ((map_.slot_of(run.first + i) != kNoSlot) != (known != model_.end()))
        return "a page is there, or not, wrongly";
    }
    for (std::uint32_t i = 0; i < run.count;) {  // runs of pages that are there
      if (!model_.contains(run.first + i)) {
        ++i;
        continue;
      }
      std::uint32_t end = i;
      while (end < run.count && model_.contains(run.first + end)) ++end;
      const pager::Backing::Read one{{run.first + i, end - i}, pages_.data()};
      if (Status status = read_one(one); !status) return status.error().message();
      for (std::uint32_t k = i; k < end; ++k) {
        if (!pages_.has(k - i, run.first + k, model_[run.first + k])) return "wrong bytes";
      }
      if (!is_at_rest(one)) return "wrong bytes where they rest";
      i = end;
    }
    return {};
  }
  // In flight, where the store can, and waited for.
  Status read_one(const pager::Backing::Read& one) {
    if (reads_of_ != getpid()) {
      reads_ = map_.reads_in_flight(1);
      reads_of_ = getpid();
    }
    if (!reads_ || !reads_->begin(0, one)) return map_.read({&one, 1});
    std::optional<pager::Backing::Reads::Answer> answer;
    while (!(answer = reads_->take())) {
    }
    return answer->arrived ? Status{} : map_.read({&one, 1});
  }
  // Together, and each page by itself: what lies in memory are the bytes that were read.
  bool is_at_rest(const pager::Backing::Read& read) {
    const auto same = [&](PageRun run) {
      const std::byte* there = map_.at_rest(run);
      if (there == nullptr) return true;
      found_at_rest_ += run.count;
      return std::memcmp(there, read.into + (run.first - read.run.first) * kPageBytes, run.count * kPageBytes) == 0;
    };
    bool all = same(read.run);
    for (std::uint32_t i = 0; i < read.run.count; ++i) all = all && same({read.run.first + i, 1});
    return all;
  }
  [[nodiscard]] std::uint64_t found_at_rest() const { return found_at_rest_; }
  std::string forget(PageRun run) {
    map_.forget(run);
    for (std::uint32_t i = 0; i < run.count; ++i) model_.erase(run.first + i);
    return {};
  }
  void values_from(std::uint64_t value) { value_ = value; }
  [[nodiscard]] std::size_t known() const { return model_.size(); }

 private:
  std::unique_ptr<pager::Backing::Reads> reads_;
  pid_t reads_of_ = 0;
  std::uint64_t found_at_rest_ = 0;
  BlockMap& map_;
  PageNumber first_;
  std::uint32_t count_;
  std::mt19937 random_;
  std::uint64_t value_ = 0;
  std::map<PageNumber, std::uint64_t> model_;
  Pages pages_;
};

// The child ends with the number of the step that was wrong.
template <class Body>
pid_t forked(BlockMap& map, Body body) {
  map.lock_for_fork();
  const pid_t child = fork();
  if (child == 0) {
    map.unlock_in_child();
    _exit(body());
  }
  map.unlock_after_fork(child > 0);
  return child;
}

[[nodiscard]] inline int status_of(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace farheap::segment
