// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The seeds' hints at work inside a program: hears of its large objects, knows those of the plan, and has a thread that
//
//   locks    those parts that plan/kernel_hints.hpp chooses of what lives, each time that objects come or go, or
//   advises  MADV_WILLNEED for what plan/use_follower.hpp says comes next. It looks every few milliseconds at which
//   parts
//            came into view (/proc/self/pagemap: what the kernel has read ahead is not in view until it is used)
//
// Thread-safety: any thread. A forked child has no hints.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/condition.hpp"
#include "base/mutex.hpp"
#include "plan/hint_file.hpp"
#include "plan/kernel_hints.hpp"
#include "plan/planned_sites.hpp"
#include "plan/use_follower.hpp"
#include "profile/allocation_observer.hpp"
#include "profile/call_sites.hpp"

namespace farheap::hints {

class HintRun final : public profile::AllocationObserver {
 public:
  // kNoSpace without addresses; kCorrupt where the file is none.
  [[nodiscard]] static Result<std::unique_ptr<HintRun>> make(plan::HintFile file);

  void allocated(const void* object, std::size_t bytes, const void* caller, const void* frame) override;
  void freed(const void* object) override;
  void unmapped(const void* at, std::size_t bytes) override;

 private:
  struct Living {
    std::uint32_t site = 0, number = 0;
    std::uint32_t object = plan::PlannedSites::kNotPlanned;  // of Plan::objects
    std::uint64_t bytes = 0;
    std::vector<plan::PageRange> locked;
  };
  using Objects = std::map<std::uint64_t, Living>;  // by first byte

  HintRun(plan::HintFile file, plan::HintPlan hints, profile::CallSites sites, int page_map);
  static void* work(void* self);
  void wait_for_change();
  void lock_chosen();
  void lock(Living& living, const std::vector<plan::PageRange>& chosen) FARHEAP_REQUIRES(mutex_);
  void unlock(Living& living, const std::vector<plan::PageRange>& ranges) FARHEAP_REQUIRES(mutex_);
  void follow_until_change();
  void look(std::vector<bool>& in_view) FARHEAP_REQUIRES(mutex_);
  void advise(plan::PageRange range);
  [[nodiscard]] bool is_in_view(std::uint64_t address) const;
  [[nodiscard]] std::vector<plan::LiveObject> planned_objects() const FARHEAP_REQUIRES(mutex_);
  void end_objects(std::uint64_t first, std::uint64_t end) FARHEAP_REQUIRES(mutex_);
  void tell_change() FARHEAP_REQUIRES(mutex_);
  void count_locked(std::int64_t bytes) FARHEAP_REQUIRES(mutex_);

  plan::HintFile file_;
  const plan::HintPlan hints_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> objects_;  // of the plan, by site and number
  profile::CallSites sites_;
  const int page_map_;
  plan::UseFollower follower_;  // of the thread

  base::Mutex mutex_;
  base::Condition changed_;
  bool is_told_ FARHEAP_GUARDED_BY(mutex_) = true;
  bool has_thread_ FARHEAP_GUARDED_BY(mutex_) = false;
  bool has_warned_ FARHEAP_GUARDED_BY(mutex_) = false;
  std::uint64_t locked_bytes_ FARHEAP_GUARDED_BY(mutex_) = 0;
  plan::PlannedSites planned_ FARHEAP_GUARDED_BY(mutex_);
  plan::ObjectNumbers numbers_ FARHEAP_GUARDED_BY(mutex_);
  Objects living_ FARHEAP_GUARDED_BY(mutex_);
};

// The one that hears of allocations; null: nobody does.
[[nodiscard]] HintRun* hints_now();

}  // namespace farheap::hints
