// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/replay.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/units.hpp"
#include "pager/pager.hpp"

namespace farheap::plan {

namespace {

using namespace pager;
using base::kPageBytes;

// No bytes but two patterns, "as stored" and "written since".
class ReplayedProgram : public View, public Backing {
 public:
  explicit ReplayedProgram(std::size_t pages)
      : in_view_(pages),
        dirty_(pages),
        stored_bytes_(kPageBytes, std::byte{1}),
        dirty_bytes_(kPageBytes, std::byte{2}) {}

  [[nodiscard]] bool sees(PageNumber page) const { return in_view_[page]; }
  void write_to(PageNumber page) { dirty_[page] = true; }
  void reads_ahead(bool on) { ahead_ = on; }
  [[nodiscard]] const ReplayCounts& counts() const { return counts_; }

  void take_out(PageRun run, std::span<Taken> answers) override {
    set(run, false);
    std::fill(answers.begin(), answers.begin() + run.count, Taken::kTaken);
  }
  void put_back(PageRun run) override { set(run, true); }
  void copy_back(PageRun run, Guard) override { set(run, true); }
  void put_in(PageRun run, const std::byte*, Guard) override { set(run, true); }
  void guard(PageRun) override {}
  void release(PageRun) override {}
  [[nodiscard]] const std::byte* shown(PageNumber page) const override { return staging(page); }
  bool read_shown(PageRun, std::byte*) const override { return false; }  // nothing is flushed here
  void stage(PageRun, const std::byte*) override {}
  const std::byte* staging(PageNumber page) const override {
    return (dirty_[page] ? dirty_bytes_ : stored_bytes_).data();
  }
  void drop_staging(std::span<const PageRun>) override {}
  void drop_view(PageRun run) override { set(run, false); }
  void wake(PageRun) override {}

  Status read(std::span<const Read> runs) override {
    for (const Read& one : runs) {
      for (std::uint32_t i = 0; i < one.run.count; ++i) {
        std::memcpy(one.into + i * kPageBytes, stored_bytes_.data(), kPageBytes);
        dirty_[one.run.first + i] = false;
      }
      counts_.pages_read += one.run.count;
      ++(ahead_ ? counts_.reads_ahead : counts_.reads);
    }
    return {};
  }
  Status write(std::span<const Write> runs) override {
    for (const Write& one : runs) {
      counts_.pages_written += one.run.count;
      counts_.writes += one.run.first != written_to_;
      written_to_ = one.run.first + one.run.count;
    }
    return {};
  }
  void forget(PageRun) override {}

 private:
  void set(PageRun run, bool on) {
    for (std::uint32_t i = 0; i < run.count; ++i) in_view_[run.first + i] = on;
  }
  std::vector<bool> in_view_, dirty_;
  const std::vector<std::byte> stored_bytes_, dirty_bytes_;
  PageNumber written_to_ = 0;
  bool ahead_ = false;  // who reads now is the reader, not a fault
  ReplayCounts counts_;
};

struct FixedBudget : Budget {
  explicit FixedBudget(std::uint64_t its_pages) : pages(its_pages) {}
  const std::uint64_t pages;
  std::uint64_t page_limit(std::uint64_t, std::uint64_t) override { return pages; }
};

}  // namespace

ReplayCounts operator-(const ReplayCounts& all, const ReplayCounts& some) {
  return {all.pages_read - some.pages_read,       all.reads - some.reads,
          all.reads_ahead - some.reads_ahead,     all.pages_written - some.pages_written,
          all.writes - some.writes,               all.soft_faults - some.soft_faults,
          all.as_expected - some.as_expected};
}

ReplayCounts replay(std::span<const ReplayedTouch> touches, std::uint64_t pages, std::uint64_t memory_pages,
                    const ReplayOptions& options) {
  ReplayedProgram program(pages);
  FixedBudget budget(memory_pages);
  base::RunCounters counters;
  PagerOptions wanted;
  wanted.capacity_pages = pages;
  wanted.probation_percent = options.probation_percent;
  wanted.policy = options.policy;
  const auto pager = Pager::make(program, program, budget, counters, std::move(wanted)).value();
  if (options.order) pager->expect(options.order);
  std::vector<std::byte> buffer(512 * kPageBytes);
  const auto evict = [&] {
    while (pager->evict_once() == Pager::Evicted::kWorked) {
    }
  };
  const auto touch = [&](PageNumber page, bool write) {
    while (!program.sees(page)) {
      pager->fault(page, write, buffer.data());
      evict();
      // Who follows an order need not wait for a touch to go on reading.
      program.reads_ahead(true);
      while (pager->read_ahead_once(buffer.data(), 0) != 0 && options.order) evict();
      program.reads_ahead(false);
      evict();
    }
    if (write) program.write_to(page);
  };
  const auto go_through = [&](std::span<const ReplayedTouch> some) {
    for (const ReplayedTouch& one : some) one.drop ? pager->discard(one.page, 1) : touch(one.page, one.write);
  };
  const auto counted = [&] {
    ReplayCounts counts = program.counts();
    counts.soft_faults = counters.faults_probation.load();
    counts.as_expected = counters.touches_expected.load();
    return counts;
  };
  const std::size_t before = std::min(options.counted_from, touches.size());
  go_through(touches.first(before));
  const ReplayCounts not_counted = counted();
  go_through(touches.subspan(before));
  return counted() - not_counted;
}

}  // namespace farheap::plan
