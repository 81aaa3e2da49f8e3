// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/replay.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/units.hpp"
#include "pager/pager.hpp"
#include "plan/phase_search.hpp"

namespace farheap::plan {

namespace {

using namespace pager;
using base::kPageBytes;
// When the device is free, and what the program waits for.
class Clock {
 public:
  Clock(const ReplayClock& speeds, std::size_t pages) : speeds_(speeds), there_at_(speeds.page > 0 ? pages : 0) {}
  [[nodiscard]] bool runs() const { return speeds_.page > 0; }
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] bool reader_is_free() const { return reader_free_ <= now_; }

  void use(PageNumber page) {
    if (!runs()) return;
    now_ = std::max(now_, there_at_[page]) + speeds_.use;
  }
  void read(PageRun run, bool ahead) {
    if (!runs()) return;
    const double there = occupy(run.count) + speeds_.request;
    for (std::uint32_t i = 0; i < run.count; ++i) there_at_[run.first + i] = there;
    if (ahead) reader_free_ = device_free_;  // another request is on its way meanwhile
  }
  void write(PageRun run) {
    if (runs()) (void)occupy(run.count);
  }

 private:
  double occupy(std::uint32_t pages) {
    device_free_ = std::max(device_free_, now_) + pages * speeds_.page;
    return device_free_;
  }
  const ReplayClock speeds_;
  double now_ = 0, device_free_ = 0, reader_free_ = 0;
  std::vector<double> there_at_;
};

// No bytes but two patterns, "as stored" and "written since".
class ReplayedProgram : public View, public Backing {
 public:
  ReplayedProgram(std::size_t pages, const ReplayClock& speeds)
      : clock_(speeds, pages),
        in_view_(pages),
        dirty_(pages),
        stored_bytes_(kPageBytes, std::byte{1}),
        dirty_bytes_(kPageBytes, std::byte{2}) {}

  [[nodiscard]] bool sees(PageNumber page) const { return in_view_[page]; }
  void write_to(PageNumber page) { dirty_[page] = true; }
  void reads_ahead(bool on) { ahead_ = on; }
  [[nodiscard]] Clock& clock() { return clock_; }
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
      clock_.read(one.run, ahead_);
      counts_.pages_read += one.run.count;
      ++(ahead_ ? counts_.reads_ahead : counts_.reads);
    }
    return {};
  }
  Status write(std::span<const Write> runs) override {
    for (const Write& one : runs) {
      clock_.write(one.run);
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
  Clock clock_;
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

ReplayCounts replay(std::span<const ReplayedTouch> touches, std::uint64_t pages, std::uint64_t memory_pages,
                    const ReplayOptions& options) {
  ReplayedProgram program(pages, options.clock);
  FixedBudget budget(std::max(memory_pages, Room::kLeastLimit));
  base::RunCounters counters;
  PagerOptions wanted;
  wanted.capacity_pages = pages;
  wanted.probation_percent = options.probation_percent;
  wanted.policy = options.policy;
  wanted.room_patience = {};
  const auto pager = Pager::make(program, program, budget, counters, std::move(wanted)).value();
  PhaseSearch phase(options.orders.size());
  if (!options.orders.empty()) pager->expect(options.orders[phase.now()]);
  std::vector<std::byte> buffer(512 * kPageBytes);
  const auto evict = [&] {
    while (pager->evict_once() == Pager::Evicted::kWorked) {
    }
  };
  Clock& clock = program.clock();
  const auto read_ahead = [&] {
    if (clock.runs() && !clock.reader_is_free()) return;
    evict();
    program.reads_ahead(true);
    while ((!clock.runs() || clock.reader_is_free()) && pager->read_ahead_once(buffer.data(), 0) != 0) {
      evict();
      if (!clock.runs()) break;  // one for each fault
    }
    program.reads_ahead(false);
  };
  const auto touch = [&](PageNumber page, bool write) {
    const bool was_in_view = program.sees(page);
    while (!program.sees(page)) pager->fault(page, write, buffer.data());
    if (write) program.write_to(page);
    clock.use(page);
    // Only now: what leaves before the touch could be the page itself, again and again.
    if (!was_in_view) evict();
    if (!was_in_view || clock.runs()) read_ahead();
    if (!was_in_view) evict();
    if (was_in_view || options.orders.empty() || !phase.is_left(pager->order_state())) return;
    pager->expect(options.orders[phase.now()], OrderFrom::kNextPhase);
  };
  for (const ReplayedTouch& one : touches) one.drop ? pager->discard(one.page, 1) : touch(one.page, one.write);
  ReplayCounts counts = program.counts();
  counts.soft_faults = counters.faults_probation.load();
  counts.as_expected = counters.touches_expected.load();
  counts.seconds = clock.now();
  return counts;
}

}  // namespace farheap::plan
