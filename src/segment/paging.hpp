// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The paging of a range of addresses: the view of it, the pager over that, the threads that serve its faults, and the
// door for hints. A segment says where the pages rest (Backing) and how much may stay (Budget), either of which may be
// a chain of decorators, and what else it is about; the order in which all is made, and what happens at a fork, is
// here.
//
// Thread-safety: any thread, once start() has returned; what is said around a fork, the thread that forks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/run_page.hpp"
#include "farheap/farheap.h"
#include "os/mapping.hpp"
#include "pager/fault_loop.hpp"
#include "pager/kernel_view.hpp"
#include "pager/order_source.hpp"
#include "pager/pager.hpp"
#include "pager/use_recording.hpp"

namespace farheap::segment {

// Threads that evict: as many as the user says; 0: what suits the processors, and the store, which at a server is
// waited for.
[[nodiscard]] unsigned evictors_for(unsigned said, std::string_view store);
// Queues of faults (KernelView): as many as the user says; 0: what suits the processors. A power of two.
[[nodiscard]] unsigned fault_queues_for(unsigned said);
// Threads that serve faults from so many queues, at the most.
[[nodiscard]] unsigned handlers_for(unsigned said, unsigned queues);

// What goes along with paging in a thread of its own, in forked children that page, too.
class Companion {
 public:
  Companion() = default;
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;
  virtual ~Companion() = default;
  // In the thread that makes paging begin, or the child's: what opens descriptors, which no other thread shall meet.
  virtual void begin() = 0;
  // In a thread of the runtime. Does not return.
  virtual void run() = 0;
};

struct PagingSettings {
  pager::PagerOptions pager;  // its capacity is the range's; `lost` ends the process
  unsigned handlers = 2;      // at the most; two for each queue of faults at least. Evictors and readers: the pager's
  bool ends = false;          // with the object, as of a heap that is closed; a program's never does
  base::HeatTable* heat = nullptr;
  pager::FaultObserver* observer = nullptr;    // from the start on; outlives the paging
  pager::OrderSource* order_source = nullptr;  // outlives the paging
  Companion* companion = nullptr;              // ... as this
  pager::MakeUseRecording make_recording;      // if it is there, all uses are recorded, and hints have no effect
  pager::MakeUseSampling make_sampling;        // otherwise; without it the observer, now or later, sees no sample
};

class Paging {
 public:
  // The range has no huge pages from here on; nothing else changes. `range` and `run_page` outlive it.
  [[nodiscard]] static Result<std::unique_ptr<Paging>> make(const os::Mapping& range, os::UserfaultFeatures wanted,
                                                            unsigned fault_queues, base::RunPage& run_page);
  ~Paging();
  Paging(const Paging&) = delete;
  Paging& operator=(const Paging&) = delete;

  // From now on the range is paged; `own` tells, when it is asked, which parts of it are private and anonymous memory.
  // What is in memory already is brought by adopt(). The backing and the budget outlive it.
  using OwnRuns = std::function<pager::KernelView::Runs()>;
  [[nodiscard]] Status start(pager::Backing& backing, pager::Budget& budget, PagingSettings settings,
                             const OwnRuns& own);
  // False where the kernel does not say what of it is in memory: that stays in view, outside of the budget.
  [[nodiscard]] bool adopt(const std::byte* at, std::size_t bytes);
  // A part of the range that was mapped to something else is private and anonymous memory again.
  [[nodiscard]] Status watch_again(std::byte* at, std::size_t bytes);

  [[nodiscard]] pager::KernelView& view() { return *view_; }
  // Requires: started; AtTheTables, for all that is called in threads of the program.
  [[nodiscard]] pager::Pager& pager() const { return *pager_; }

  // ---- by address
  // All of it is in the range, in whole pages (Pager::discard).
  void discard(const std::byte* at, std::size_t bytes);
  // What is said of the part of [at, at + bytes) that lies in the range: the first byte has to, or it is refused. The
  // one door for hints by address, whoever says them.
  bool hint(pager::HintKind kind, const void* at, std::size_t bytes);
  // The program says in which order it is about to use the range (farheap_expect_order()). No steps end that. Refused
  // if the first step begins elsewhere. Requires: pager::is_order().
  bool expect_order(std::span<const farheap_step> steps, std::size_t round);

  // ---- observed for a while
  // From now on this one sees the faults, and a sample of these runs is taken out of view, so that their next use is
  // seen. It outlives the paging. Who observes calls take_sampled_out() every millisecond or so. Requires: started with
  // make_sampling, and not observed.
  [[nodiscard]] Status observe(pager::FaultObserver& observer, const pager::KernelView::Runs& runs);
  void take_sampled_out();
  // From now on nobody does; but a call of it may still be under way.
  void observe_no_more();
  // In a forked child, before thaw_in_child(): whoever observes the parent does not see it.
  void leave_observer_to_parent() { loop_->observe(nullptr); }

  // ---- fork. In this order, with what the segment and its backing have to do in between; `heat`: the child's.
  void pause_eviction() { pager_->pause_eviction(true); }
  void freeze();
  void thaw();
  [[nodiscard]] Status thaw_in_child(base::HeatTable* heat, const OwnRuns& own);

 private:
  Paging(const os::Mapping& range, std::unique_ptr<pager::KernelView> view, base::RunPage& run_page);
  [[nodiscard]] pager::PageNumber page_at(const void* at) const;
  // A child that is made unseen, by system calls of the program's own, would read zeros where pages had left: it shall
  // not have the range at all. Those that are seen get it.
  void inherit(bool on) const;

  const os::Mapping& range_;
  base::RunPage& run_page_;
  std::unique_ptr<pager::KernelView> view_;
  [[nodiscard]] Status make_recording(const pager::MakeUseRecording& make, pager::Backing& backing,
                                      pager::Budget& budget);
  void make_sampling(const pager::MakeUseSampling& make);
  void begin_sampling(pager::FaultObserver& observer);
  void start_companion() const;
  static void* watch_sample(void* paging);
  static void* tell_order(void* paging);

  std::unique_ptr<pager::UseSampling> sampling_;  // around the view, if an observer may want it
  pager::OrderSource* order_source_ = nullptr;
  Companion* companion_ = nullptr;
  std::unique_ptr<pager::UseRecording> recording_;  // around the view, the backing and the budget, if asked for
  std::unique_ptr<pager::Pager> pager_;
  std::unique_ptr<pager::FaultLoop> loop_;
  bool ends_ = false;
};

}  // namespace farheap::segment
