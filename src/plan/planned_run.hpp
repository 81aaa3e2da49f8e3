// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan at work inside a program: hears of its large objects, and tells the pager in which order those that the plan
// knows will be used. What it does not know stays with the pager's own policy. Which small objects lie together is told
// to whoever allocates (planned_regions.hpp).
//
//   which object it is   the stack of its allocation (profile/call_sites.hpp), by file, build-id and offset, as the
//   plan
//                        names it; and which others of the same site live
//   when the pager hears a little after objects have come or gone, it is told of all that live
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "os/mapping.hpp"
#include "pager/order_source.hpp"
#include "plan/phase_search.hpp"
#include "plan/plan.hpp"
#include "plan/planned_order.hpp"
#include "plan/planned_regions.hpp"
#include "plan/planned_sites.hpp"
#include "profile/allocation_observer.hpp"
#include "profile/call_sites.hpp"

namespace farheap::plan {

class PlannedRun final : public profile::AllocationObserver, public pager::OrderSource {
 public:
  // `most_visits`: an order of more is not followed (most_visits_in()). kNoSpace without addresses.
  [[nodiscard]] static Result<std::unique_ptr<PlannedRun>> make(Plan plan, std::span<const std::byte> heap,
                                                                std::uint64_t most_visits);

  // nullptr: the plan has none.
  [[nodiscard]] PlannedRegions* regions() const { return regions_.get(); }
  // True: it has an order of large objects, and wants to be told of them.
  [[nodiscard]] bool has_order() const { return !plan_.phases.empty(); }

  void allocated(const void* object, std::size_t bytes, const void* caller, const void* frame) override;
  void freed(const void* object) override;
  void unmapped(const void* at, std::size_t bytes) override;

  // The order of the phase's objects that live now; where none of them does, of a later phase.
  [[nodiscard]] std::shared_ptr<const pager::PageOrder> order() override;
  [[nodiscard]] std::size_t part() const override { return phase_.now(); }
  [[nodiscard]] bool left(pager::OrderState state) override { return phase_.is_left(state); }
  [[nodiscard]] bool is_met() const override {
    return is_met_.load(std::memory_order_relaxed) || (regions_ != nullptr && regions_->is_met());
  }
  bool wait_for_change(base::Clock::duration at_most) override;

 private:
  struct Living {
    std::uint32_t site = 0, number = 0;
    bool is_planned = false;  // in any phase; those that are not count for the numbers
    std::uint64_t bytes = 0;
  };
  PlannedRun(Plan plan, std::span<const std::byte> heap, std::uint64_t most_visits, profile::CallSites sites,
             os::ReservedArray<std::atomic<std::uint8_t>> begins);
  // Of the phase that the program is in.
  [[nodiscard]] std::vector<LiveObject> living_objects() const FARHEAP_REQUIRES(mutex_);
  void end_objects(std::uint64_t offset, std::uint64_t bytes);
  void forget(std::uint64_t first, std::uint64_t end) FARHEAP_REQUIRES(mutex_);
  void tell_change() FARHEAP_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t offset_of(const void* at) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - heap_.data());
  }

  const Plan plan_;
  std::unique_ptr<PlannedRegions> regions_;
  // Of the plan's phases, by site and number.
  using Objects = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>;
  std::vector<Objects> objects_;
  const std::span<const std::byte> heap_;
  const std::uint64_t most_visits_;
  profile::CallSites sites_;
  // By pieces of kLargeObjectBytes: a planned object begins there. So most that is freed is passed by without a lock.
  os::ReservedArray<std::atomic<std::uint8_t>> begins_;

  // The thread that asks for the order keeps here what the last one was made of, and how long that took.
  PhaseSearch phase_;
  std::size_t told_phase_ = 0;
  std::vector<LiveObject> told_;
  std::shared_ptr<const pager::PageOrder> order_;
  base::Clock::duration took_{};
  bool has_warned_ = false;

  std::atomic<bool> is_met_{false};
  base::Mutex mutex_;
  base::Condition changed_;
  bool is_told_ FARHEAP_GUARDED_BY(mutex_) = true;
  PlannedSites planned_ FARHEAP_GUARDED_BY(mutex_);
  ObjectNumbers numbers_ FARHEAP_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Living> living_ FARHEAP_GUARDED_BY(mutex_);  // by first byte
};

}  // namespace farheap::plan
