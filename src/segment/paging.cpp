// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/paging.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/processors.hpp"
#include "os/page_map.hpp"
#include "os/runtime_threads.hpp"
#include "pager/said_order.hpp"
#include "segment/at_the_tables.hpp"
#include "store/kinds.hpp"

namespace farheap::segment {

using base::kPageBytes;

unsigned evictors_for(unsigned said, std::string_view store) {
  constexpr unsigned kProcessorsForOne = 4, kMost = 4;
  const unsigned least = store::is_at_a_server(store) ? 2 : 1;
  return said != 0 ? said : std::clamp(base::usable_processors() / kProcessorsForOne, least, kMost);
}

// On two processors one queue is better: whoever serves it finds the next fault before he has to sleep.
unsigned fault_queues_for(unsigned said) {
  constexpr unsigned kProcessorsForOne = 4, kMost = 4;
  return std::bit_floor(said != 0 ? said : std::clamp(base::usable_processors() / kProcessorsForOne, 1u, kMost));
}

unsigned handlers_for(unsigned said, unsigned queues) { return queues == 1 ? said : std::max(said, 2 * queues); }

Result<std::unique_ptr<Paging>> Paging::make(const os::Mapping& range, os::UserfaultFeatures wanted,
                                             unsigned fault_queues, base::RunPage& run_page) {
  syscall(SYS_madvise, range.data(), range.size(), MADV_NOHUGEPAGE);
  auto view = pager::KernelView::make(range.data(), range.size(), wanted, fault_queues);
  if (!view) return fail(std::move(view.error()));
  return std::unique_ptr<Paging>(new Paging(range, std::move(*view), run_page));
}

Paging::Paging(const os::Mapping& range, std::unique_ptr<pager::KernelView> view, base::RunPage& run_page)
    : range_(range), run_page_(run_page), view_(std::move(view)) {}

Paging::~Paging() {
  if (loop_ && ends_) loop_->stop();
}

Status Paging::start(pager::Backing& backing, pager::Budget& budget, PagingSettings settings, const OwnRuns& own) {
  if (settings.make_recording) {
    if (Status made = make_recording(settings.make_recording, backing, budget); !made) return made;
  } else if (settings.make_sampling) {
    make_sampling(settings.make_sampling);
  }
  order_source_ = settings.order_source;
  companion_ = settings.companion;
  pager::View& whole = sampling_ ? sampling_->view() : *view_;
  pager::View& seen = recording_ ? recording_->view() : whole;
  pager::Backing& rests = recording_ ? recording_->backing() : backing;
  pager::Budget& room = recording_ ? recording_->budget() : budget;
  if (settings.pager.track_changes) view_->keep_guards();
  settings.pager.capacity_pages = range_.size() / kPageBytes;
  const pager::FaultLoopOptions threads{.most_handlers = handlers_for(settings.handlers, view_->queues()),
                                        .queues = view_->queues(),
                                        .buffer_pages = settings.pager.block_max_pages,
                                        .readers = settings.pager.readers,
                                        .evictors = settings.pager.evictors,
                                        .can_stop = settings.ends,
                                        .weighs_orders = settings.order_source == nullptr,
                                        .observer = settings.observer};
  auto pager = pager::Pager::make(seen, rests, room, run_page_.counters, std::move(settings.pager));
  if (!pager) return fail(std::move(pager.error()));
  pager_ = std::move(*pager);
  if (settings.heat != nullptr) pager_->heat_goes_to(*settings.heat);
  loop_ = std::make_unique<pager::FaultLoop>(*pager_, rests, *view_, run_page_, threads);
  ends_ = settings.ends;
  // The threads first: to start one, the C library may allocate from an allocator that the program has linked in, and
  // so touch what is watched.
  if (Status started = loop_->start(); !started) return started;
  if (settings.observer != nullptr) {
    settings.observer->paging_begins();
    begin_sampling(*settings.observer);
  }
  start_companion();
  if (order_source_ != nullptr) {
    const Status begun = os::start_runtime_thread(&Paging::tell_order, this);
    if (!begun) base::log(base::LogLevel::kWarn, "the plan is not followed: {}", begun.error().message());
  }
  if (Status watched = view_->watch(own()); !watched) return watched;
  inherit(false);
  run_page_.counters.paging_processes.fetch_add(1);
  return {};
}

void Paging::inherit(bool on) const {
  syscall(SYS_madvise, range_.data(), range_.size(), on ? MADV_DOFORK : MADV_DONTFORK);
}

pager::PageNumber Paging::page_at(const void* at) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(at) - range_.data()) / kPageBytes;
}

bool Paging::adopt(const std::byte* at, std::size_t bytes) {
  constexpr std::size_t kAtOnce = 512;
  os::PageEntry entries[kAtOnce];
  const pager::PageNumber end = page_at(at) + bytes / kPageBytes;
  for (pager::PageNumber first = page_at(at); first < end; first += kAtOnce, at += kAtOnce * kPageBytes) {
    const std::size_t count = std::min<std::uint64_t>(kAtOnce, end - first);
    if (!os::read_page_map(at, {entries, count}) && !os::find_in_memory(at, {entries, count})) return false;
    for (std::size_t i = 0; i < count;) {
      std::size_t stop = i;
      while (stop < count && entries[stop].present) ++stop;
      const pager::PageRun run{first + i, static_cast<std::uint32_t>(stop - i)};
      if (run.count != 0) pager_->adopt(run);
      i = stop + 1;
    }
  }
  return true;
}

// What a neighbour's fault filled in while nobody watched is not there.
Status Paging::watch_again(std::byte* at, std::size_t bytes) {
  syscall(SYS_madvise, at, bytes, MADV_DONTFORK);  // as all of the range
  if (Status watched = view_->watch(at, bytes); !watched) return watched;
  pager_->discard(page_at(at), bytes / kPageBytes);
  return {};
}

void Paging::discard(const std::byte* at, std::size_t bytes) {
  AtTheTables working;
  pager_->discard(page_at(at), bytes / kPageBytes);
}

// A program is not ended because it cannot be recorded.
static void note_unsampled(const Error& error) {
  base::log(base::LogLevel::kWarn, "the use of pages is not recorded: {}", error.message());
}

Status Paging::make_recording(const pager::MakeUseRecording& make, pager::Backing& backing, pager::Budget& budget) {
  auto made = make(range_.data(), range_.size() / kPageBytes, *view_, backing, budget);
  if (!made) return fail(std::move(made.error()));
  recording_ = std::move(*made);
  return {};
}

void Paging::make_sampling(const pager::MakeUseSampling& make) {
  auto made = make(range_.size() / kPageBytes, *view_);
  if (!made) return note_unsampled(made.error());
  sampling_ = std::move(*made);
}

void Paging::begin_sampling(pager::FaultObserver& observer) {
  const std::string path = sampling_ ? observer.sample_path() : std::string();
  if (path.empty()) return;
  Status begun = sampling_->begin(path);
  if (begun) begun = os::start_runtime_thread(&Paging::watch_sample, this);
  if (!begun) note_unsampled(begun.error());
}

// What the sampler's window allows to stay in view for a while may stay a little longer.
void* Paging::watch_sample(void* paging) {
  constexpr std::chrono::milliseconds kBetweenLooks{1};
  auto& self = *static_cast<Paging*>(paging);
  for (;;) {
    self.take_sampled_out();
    base::sleep_for(kBetweenLooks);
  }
}

void Paging::take_sampled_out() {
  for (std::optional<pager::PageNumber> page; (page = sampling_->next_due());) {
    if (pager_->watch(*page)) continue;
    sampling_->not_now(*page);
    return;
  }
}

Status Paging::observe(pager::FaultObserver& observer, const pager::KernelView::Runs& runs) {
  if (!sampling_) {
    return fail(ErrorCode::kNoSpace, "cannot record the use of pages", "addresses", "there were none for its books",
                os::remedy_for_addresses());
  }
  if (Status begun = sampling_->begin(observer.sample_path()); !begun) return begun;
  loop_->observe(&observer);
  for (const auto& [at, bytes] : runs) {
    pager_->tell_in_view(page_at(at), bytes / kPageBytes,
                         [this](pager::PageRun run) { sampling_->view().adopted(run); });
  }
  return {};
}

void Paging::observe_no_more() {
  loop_->observe(nullptr);
  if (sampling_) sampling_->end();  // there may have been no addresses for it
}

// A program, or its child, is not ended because nobody can go along with it.
void Paging::start_companion() const {
  if (companion_ == nullptr) return;
  companion_->begin();
  const auto run = [](void* companion) -> void* {
    static_cast<Companion*>(companion)->run();
    return nullptr;
  };
  if (const Status started = os::start_runtime_thread(run, companion_); !started) {
    base::log(base::LogLevel::kInfo, "nobody can attach to process {}: {}", getpid(), started.error().message());
  }
}

void* Paging::tell_order(void* paging) {
  constexpr std::chrono::milliseconds kBetweenLooks{100};
  auto& self = *static_cast<Paging*>(paging);
  const std::uint64_t budget_pages = self.run_page_.budget_bytes.load(std::memory_order_relaxed) / kPageBytes;
  bool has_warned = false, is_met = false;
  const auto note_met = [&] {
    if (is_met || !self.order_source_->is_met()) return;
    is_met = true;
    self.run_page_.counters.plans_met.fetch_add(1, std::memory_order_relaxed);
  };
  for (std::size_t part = 0;;) {
    const auto order = self.order_source_->order();
    const bool fits = order == nullptr || order->fits(budget_pages);
    if (!fits && !std::exchange(has_warned, true)) {
      base::log(base::LogLevel::kWarn,
                "the plan is not followed: it goes across objects, more of which is used side by side than there is "
                "memory for");
    }
    note_met();
    const std::size_t before = std::exchange(part, self.order_source_->part());
    self.pager_->expect(fits ? order : nullptr,
                        part == before ? pager::OrderFrom::kPlan : pager::OrderFrom::kNextPhase);
    while (!self.order_source_->wait_for_change(kBetweenLooks)) {
      const pager::OrderState state = self.pager_->order_state();
      const bool is_kept = state == pager::OrderState::kKept || state == pager::OrderState::kNone;
      if (!is_kept && self.order_source_->left(state)) break;
      self.pager_->weigh_order();  // meanwhile the budget may change
      note_met();
    }
  }
}

bool Paging::hint(pager::HintKind kind, const void* at, std::size_t bytes) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - range_.data());
  if (offset >= range_.size() || bytes == 0) return false;
  if (recording_) return true;  // pages come when they are used, and not before
  AtTheTables working;
  const std::size_t end = offset + std::min(bytes, range_.size() - offset);
  const pager::PageNumber first = offset / kPageBytes;
  pager_->hint({kind, first, base::pages_for(end) - first});
  return true;
}

bool Paging::expect_order(std::span<const farheap_step> steps, std::size_t round) {
  const std::span<const std::byte> range(range_.data(), range_.size());
  if (!steps.empty() && !pager::begins_in(range, steps[0])) return false;
  if (recording_) return true;  // as with hints
  AtTheTables working;
  pager_->expect(pager::said_order(range, steps, round), pager::OrderFrom::kProgram);
  return true;
}

void Paging::freeze() {
  pager_->freeze();
  inherit(true);
}

void Paging::thaw() {
  inherit(false);
  pager_->thaw();
}

Status Paging::thaw_in_child(base::HeatTable* heat, const OwnRuns& own) {
  inherit(false);
  if (heat != nullptr) pager_->heat_goes_to(*heat);
  if (recording_) recording_->stop_in_child();
  if (sampling_) sampling_->stop_in_child();
  pager_->thaw_in_child();
  if (Status renewed = view_->renew_in_child(own()); !renewed) return renewed;
  if (Status started = loop_->start_in_child(); !started) return started;
  start_companion();
  run_page_.counters.paging_processes.fetch_add(1);
  return {};
}

}  // namespace farheap::segment
