// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many pages are in memory, how many may be, and who wants more: the arithmetic behind evictor and faults. All
// numbers are of pages.
//
// Thread-safety: none of its own; the pager's mutex guards it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pager/budget.hpp"

namespace farheap::pager {

class Room {
 public:
  static constexpr std::uint64_t kMostReserve = 2048, kLeastReserve = 32;
  static constexpr std::uint64_t kLeastLimit = 64;

  // The budget must outlive it.
  explicit Room(Budget& budget) : budget_(budget), limit_(budget.page_limit(0, 0)) {}

  // Asks the budget anew.
  void refresh() {
    limit_ = std::max<std::uint64_t>(budget_.page_limit(resident_, announced_ + 2 * reserve()), kLeastLimit);
  }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }

  // In memory, wherever: in view, in staging, on their way in; twice, where a page has two copies for a while.
  [[nodiscard]] std::uint64_t resident() const { return resident_; }
  void came(std::uint64_t pages) { resident_ += pages; }
  void went(std::uint64_t pages) { resident_ -= pages; }

  // May come in now.
  [[nodiscard]] std::uint64_t free() const { return resident_ < limit_ ? limit_ - resident_ : 0; }
  [[nodiscard]] bool lacks(std::uint64_t pages) const { return resident_ + pages > limit_; }

  // What is kept free, so that a fault finds room: as much as bursts of faults have needed lately.
  [[nodiscard]] std::uint64_t reserve() const {
    return std::min(reserve_, std::clamp<std::uint64_t>(limit_ / 256, kLeastReserve, kMostReserve));
  }
  [[nodiscard]] bool lacks_reserve() const { return lacks(reserve()); }
  // Each round of the evictor takes a part of it (under 64 pages, none) while nothing is read ahead: a sweep comes in
  // bursts.
  void lower_reserve() { reserve_ = announced_ != 0 ? kMostReserve : reserve_ - reserve_ / kReserveDecay; }

  // That requests for read-ahead will bring in: room is made ahead of them.
  [[nodiscard]] std::uint64_t announced() const { return announced_; }
  void announce(std::uint64_t pages) { announced_ += pages; }
  void no_longer_announced(std::uint64_t pages) { announced_ -= pages; }
  [[nodiscard]] bool lacks_announced() const { return lacks(reserve() + announced_); }

  // Being written: they will be free soon.
  [[nodiscard]] std::uint64_t leaving() const { return leaving_; }
  void will_leave(std::uint64_t pages) { leaving_ += pages; }
  // Of those: they went, or they stay after all.
  void has_left(std::uint64_t pages) {
    went(pages);
    leaving_ -= pages;
  }
  void stays(std::uint64_t pages) { leaving_ -= pages; }

  // An evictor is looking for so many that may leave; it ends that before any of them is said to leave. Meanwhile the
  // others look for more.
  void begin_search(std::uint64_t pages) { sought_ += pages; }
  void end_search(std::uint64_t pages) { sought_ -= pages; }
  [[nodiscard]] std::uint64_t sought() const { return sought_; }

  // What evictors are to bring out, beside what they already do. A round begins when less is free than the reserve and
  // what is announced, and goes on until that much and the reserve again is. Where somebody waits though some are on
  // their way already, the store takes its time: then as many again set out. 0: nothing to do.
  [[nodiscard]] std::uint64_t excess() const {
    const std::uint64_t on_way = leaving_ + sought_;
    const std::uint64_t again = waiting_ != 0 ? std::min(on_way, limit_ / kMostOnWay) : 0;
    const std::uint64_t high = limit_ - std::min(limit_, reserve() + announced_ + again);
    const std::uint64_t staying = resident_ - std::min(resident_, on_way);
    return staying <= high ? 0 : staying - (high - std::min(high, reserve()));
  }

  // Somebody has to wait, so the reserve was too small.
  void begin_wait() {
    ++waiting_;
    reserve_ = std::min(reserve() * 5 / 4, kMostReserve);
  }
  void end_wait() { --waiting_; }
  [[nodiscard]] std::uint32_t waiting() const { return waiting_; }

  // A round of the evictor found something that may leave, or nothing.
  void note_round(bool found) { stuck_rounds_ = found ? 0 : stuck_rounds_ + 1; }
  [[nodiscard]] bool is_stuck() const { return stuck_rounds_ != 0; }
  // All is pinned or locked by the program: to wait longer is in vain. (What is pinned for a read ends: some rounds.)
  [[nodiscard]] bool is_hopeless() const { return stuck_rounds_ >= kStuckRounds && leaving_ == 0; }

  // In a forked child: the threads that waited, those that read ahead, and those that looked for pages to bring out,
  // are not there. (Nothing was being written.)
  void forget_threads() {
    waiting_ = 0;
    announced_ = sought_ = 0;
  }

 private:
  static constexpr std::uint64_t kReserveDecay = 64;
  static constexpr std::uint64_t kMostOnWay = 16;   // a part of memory
  static constexpr std::uint32_t kStuckRounds = 3;  // some milliseconds apart

  Budget& budget_;
  std::uint64_t limit_;
  std::uint64_t resident_ = 0;
  std::uint64_t reserve_ = kMostReserve;
  std::uint64_t announced_ = 0;
  std::uint64_t leaving_ = 0;
  std::uint64_t sought_ = 0;
  std::uint32_t waiting_ = 0;
  std::uint32_t stuck_rounds_ = 0;  // in a row
};

}  // namespace farheap::pager
