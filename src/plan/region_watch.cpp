// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/region_watch.hpp"

#include <algorithm>
#include <bit>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "os/runtime_threads.hpp"

namespace farheap::plan {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kLook{2};
constexpr milliseconds kQuiet{20};                     // nothing more comes
constexpr std::uint64_t kTellsSpeed = 4 * base::kMiB;  // read at once
constexpr double kFastest = 0.05, kSlowest = 1000;     // nanoseconds of a byte

nanoseconds now() { return base::Clock::now().time_since_epoch(); }

}  // namespace

bool RegionTurns::waited(Nanoseconds now, Nanoseconds stalled, Nanoseconds cost) {
  if (is_being_read_) return false;
  const Nanoseconds begun = std::max(now - stalled, counted_until_);
  const Nanoseconds enough = cost * times_;
  if (begun - since_ > std::max(kWithin, 2 * enough)) {
    since_ = begun;
    waited_ = {};
  }
  waited_ += std::max(now - begun, Nanoseconds(0));
  counted_until_ = std::max(counted_until_, now);
  if (waited_ < enough) return false;
  times_ = begun - read_ > enough * kPaysWithin ? 1 : std::min(times_ * 2, kMostTimes);
  is_being_read_ = true;
  return true;
}

void RegionTurns::read(Nanoseconds now) {
  is_being_read_ = false;
  read_ = since_ = counted_until_ = now;
  waited_ = {};
}

// Not by the first handler that has something for it: who makes a thread may wait for a lock that the program holds.
void RegionWatch::paging_begins() {
  if (const Status started = os::start_runtime_thread(&RegionWatch::serve, this); !started) {
    base::log(base::LogLevel::kWarn, "regions of the plan come page by page: {}", started.error().message());
  }
}

void RegionWatch::ended(pager::PageNumber page, std::uint32_t /*place*/, nanoseconds stalled,
                        std::uint32_t pages_read) {
  if (pages_read == 0) return;
  const unsigned region = regions_.region_of(page);
  if (region == 0) return;
  const auto bytes = static_cast<double>(regions_.bytes_of(region));
  const base::LockGuard lock(mutex_);
  const nanoseconds cost(static_cast<std::int64_t>(bytes * nanoseconds_of_byte_));
  if (!turns_[region - 1].waited(now(), stalled, cost)) return;
  due_ |= 1u << (region - 1);
  is_due_.notify_one();
}

void* RegionWatch::serve(void* self) {
  auto& watch = *static_cast<RegionWatch*>(self);
  for (;;) watch.read(watch.wait_for_due());
}

unsigned RegionWatch::wait_for_due() {
  const base::LockGuard lock(mutex_);
  while (due_ == 0) is_due_.wait(mutex_);
  const auto first = static_cast<unsigned>(std::countr_zero(due_));
  due_ &= due_ - 1;
  return first + 1;
}

void RegionWatch::read(unsigned region) {
  const std::uint64_t bytes = regions_.bytes_of(region);
  if (bytes <= regions_.most_bytes()) {
    const std::uint64_t before = regions_.bytes_read();
    regions_.need(region);
    wait_until_read(before + bytes);
  }
  const base::LockGuard lock(mutex_);
  turns_[region - 1].read(now());
}

// Pages that are in memory do not come, and others may read, too. So the wait ends when nothing has come for a while.
void RegionWatch::wait_until_read(std::uint64_t bytes) {
  const nanoseconds begin = now();
  const std::uint64_t first = regions_.bytes_read();
  nanoseconds last = begin;
  std::uint64_t there = first;
  while (there < bytes && now() - last < kQuiet) {
    base::sleep_for(kLook);
    const std::uint64_t before = std::exchange(there, regions_.bytes_read());
    if (there != before) last = now();
  }
  if (there - first < kTellsSpeed) return;
  const double speed = static_cast<double>((last - begin).count()) / static_cast<double>(there - first);
  const base::LockGuard lock(mutex_);
  nanoseconds_of_byte_ = std::clamp(speed, kFastest, kSlowest);
}

}  // namespace farheap::plan
