// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of a plan's regions a small object belongs to, by where it is allocated. Most callers tell it by themselves,
// because all that they allocate is in one region, or in none; of the others the stack is looked at. What was found is
// remembered, so that most calls take no lock.
//
// Thread-safety: any thread. A forked child may not ask.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.hpp"
#include "os/mapping.hpp"
#include "plan/plan.hpp"
#include "plan/planned_sites.hpp"
#include "profile/call_sites.hpp"

namespace farheap::plan {

class PlannedRegions {
 public:
  // `heap`: what is called from a stack that lies there is in no region. kNoSpace without addresses.
  [[nodiscard]] static Result<std::unique_ptr<PlannedRegions>> make(const Plan& plan, std::span<const std::byte> heap);

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(plan_.regions.size()); }
  // 1 and on; 0 for what is in none. `caller` and `frame` as CallSites::site_of has them.
  [[nodiscard]] unsigned region_of(const void* caller, const void* frame);
  // Whether something was allocated in one.
  [[nodiscard]] bool is_met() const { return is_met_.load(std::memory_order_relaxed); }

 private:
  // What a return address says. It is written before the address.
  struct Caller {
    std::atomic<std::uintptr_t> address;  // 0: nothing is here
    std::atomic<std::uint8_t> region;     // as known_ has it; kUnknown: its stack has to be looked at
  };
  using Callers = os::ReservedArray<Caller>;
  static constexpr std::size_t kCallers = 1u << 14, kMostSteps = 8;
  using RegionOfSite = os::ReservedArray<std::atomic<std::uint8_t>>;
  static constexpr std::uint8_t kUnknown = 0, kNoRegion = 1;  // region 1 is the next
  PlannedRegions(const Plan& plan, std::span<const std::byte> heap, profile::CallSites calls, RegionOfSite known,
                 Callers callers);
  [[nodiscard]] unsigned told(std::uint8_t found);
  [[nodiscard]] Caller* find(std::uintptr_t address);
  [[nodiscard]] std::uint8_t look_up_caller(std::uintptr_t address, Caller& into);
  [[nodiscard]] std::uint8_t region_of_stack(const void* caller, const void* frame);
  [[nodiscard]] std::uint8_t look_up(profile::SiteId site);

  Plan plan_;  // without its phases
  const std::span<const std::byte> heap_;
  profile::CallSites calls_;
  RegionOfSite known_;                 // by SiteId
  Callers callers_;                    // by a hash of the address
  std::vector<std::uint8_t> regions_;  // by the plan's site, as known_ has them; kUnknown: no region's
  std::atomic<bool> is_met_{false};
  base::Mutex mutex_;
  PlannedSites planned_ FARHEAP_GUARDED_BY(mutex_);
};

}  // namespace farheap::plan
