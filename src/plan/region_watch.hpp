// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Brings a plan's region into memory as a whole when the program turns to it. What lies in a region is hot at the same
// time (regions.hpp). So where it was away, and threads begin to wait for its pages, they are going to wait for all of
// them, one after the other; to read the region in large pieces takes a fraction of that.
//
// A region is read once threads have waited for its pages as long as reading all of it takes. So being wrong costs
// about as much again ("ski rental": Karlin, Manasse, Rudolph, Sleator, "Competitive snoopy caching", Algorithmica
// 1988). Where it did not help, twice as much has to be waited the next time. How long reading takes is known from the
// last time.
//
// Thread-safety: as FaultObserver. A thread of its own says what is needed; handlers cannot, because they may not wait
// for the pager.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "pager/fault_observer.hpp"
#include "plan/plan.hpp"

namespace farheap::plan {

// Says when a region is to be read. One thread at a time.
class RegionTurns {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  // At `now` a thread goes on that has waited so long for a page of the region, which takes `cost` to read as a whole.
  // True: it is to be read; until read() nothing counts. What several threads wait for at once counts once.
  [[nodiscard]] bool waited(Nanoseconds now, Nanoseconds stalled, Nanoseconds cost);
  void read(Nanoseconds now);

 private:
  static constexpr Nanoseconds kWithin = std::chrono::milliseconds(500);  // or twice what has to be waited
  static constexpr unsigned kMostTimes = 1u << 10;
  static constexpr int kPaysWithin = 8;  // times what was waited: sooner it did not help
  Nanoseconds since_{0}, waited_{0}, counted_until_{0};
  Nanoseconds read_{std::chrono::hours(-1)};
  unsigned times_ = 1;
  bool is_being_read_ = false;
};

class RegionWatch final : public pager::FaultObserver {
 public:
  struct Regions {
    std::function<unsigned(pager::PageNumber)> region_of;    // from 1 on; 0: of none
    std::function<std::uint64_t(unsigned region)> bytes_of;  // addresses
    std::function<std::uint64_t()> most_bytes;               // of a region that is read; asked by the thread
    std::function<void(unsigned region)> need;               // says that all of it is needed; by the thread
    std::function<std::uint64_t()> bytes_read;               // ahead, by this run so far
  };
  explicit RegionWatch(Regions regions) : regions_(std::move(regions)) {}

  void paging_begins() override;
  [[nodiscard]] std::uint32_t begun(std::uint32_t, std::uintptr_t) override { return 0; }
  void ended(pager::PageNumber page, std::uint32_t place, std::chrono::nanoseconds stalled,
             std::uint32_t pages_read) override;
  [[nodiscard]] std::string sample_path() override { return {}; }

 private:
  static void* serve(void* self);
  [[nodiscard]] unsigned wait_for_due();
  void read(unsigned region);
  void wait_until_read(std::uint64_t bytes);

  const Regions regions_;
  base::Mutex mutex_;
  base::Condition is_due_;
  std::array<RegionTurns, kMostRegions> turns_ FARHEAP_GUARDED_BY(mutex_);
  std::uint32_t due_ FARHEAP_GUARDED_BY(mutex_) = 0;           // a bit for each region
  double nanoseconds_of_byte_ FARHEAP_GUARDED_BY(mutex_) = 1;  // of what was read last
};

}  // namespace farheap::plan
