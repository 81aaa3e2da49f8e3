// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/paged_segment.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/inside_runtime.hpp"
#include "base/log.hpp"
#include "os/page_map.hpp"
#include "segment/address_slots.hpp"

namespace farheap::segment {

using base::kPageBytes;

namespace {

// Huge pages are taken only while they cannot be what brings the budget nearer.
constexpr std::uint64_t kHugePagesFromBudget = 256 * base::kMiB;
// To look costs tens of microseconds, to drop so much and to touch it again some milliseconds.
constexpr std::size_t kDroppedBetweenLooks = 4 * base::kMiB;
constexpr std::size_t kDumpStep = 32 * base::kMiB;  // so that it is a rare call

// The calling thread works on the pager's tables. No signal may come in between: its handler could touch a page that
// left, and wait for a lock that this thread holds.
class AtTheTables {
 public:
  AtTheTables() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AtTheTables() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AtTheTables(const AtTheTables&) = delete;
  AtTheTables& operator=(const AtTheTables&) = delete;

 private:
  base::InsideRuntime inside_;
  sigset_t before_;
};

[[noreturn]] void give_up(const Error& error) {
  base::log(base::LogLevel::kError, "{}", error.message());
  base::log(base::LogLevel::kError, "the program is ended: its data can no longer be kept");
  _exit(74);  // EX_IOERR
}

pager::PagerOptions pager_options(const base::Options& options, std::uint64_t capacity_pages) {
  pager::PagerOptions result;
  result.capacity_pages = capacity_pages;
  result.policy =
      options.policy == base::EvictionPolicy::kClock ? pager::PolicyKind::kClock : pager::PolicyKind::kS3Fifo;
  result.block_min_pages = static_cast<std::uint32_t>(options.block_min / kPageBytes);
  result.block_max_pages = static_cast<std::uint32_t>(options.block_max / kPageBytes);
  result.read_ahead_pages = options.read_ahead / kPageBytes;
  result.probation_percent = options.probation;
  result.wait_when_full = options.on_full == base::OnFull::kPause;
  result.lost = give_up;
  if (!options.record_pages.empty()) {  // what comes is what was used, and nothing else
    result.block_min_pages = result.block_max_pages = 1;
    result.read_ahead_pages = 0;
  }
  return result;
}

os::UserfaultFeatures wanted_features(const base::Options& options) {
  return {.move = !options.disable.has(base::Feature::kMove),
          .kernel_faults = !options.disable.has(base::Feature::kKernelFaults)};
}

}  // namespace

Result<std::unique_ptr<PagedSegment>> PagedSegment::make(const base::Options& options, base::RunPage& run_page) {
  auto range = os::Mapping::reserve_at(slot_address(options.heap_id), kSlotBytes, os::Access::kReadWrite);
  if (!range) return fail(std::move(range.error()));
  return std::unique_ptr<PagedSegment>(new PagedSegment(options, run_page, std::move(*range)));
}

PagedSegment::PagedSegment(const base::Options& options, base::RunPage& run_page, os::Mapping range)
    : options_(options),
      run_page_(run_page),
      range_(std::move(range)),
      runs_(range_.data(), range_.size()),
      budget_(run_page) {
  syscall(SYS_madvise, range_.data(), range_.size(), MADV_DONTDUMP);
  advise_plain_life();
}

void PagedSegment::advise_plain_life() {
  const bool huge = !options_.disable.has(base::Feature::kHugePages) &&
                    run_page_.budget_bytes.load(std::memory_order_relaxed) >= kHugePagesFromBudget;
  syscall(SYS_madvise, range_.data(), range_.size(), huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

void PagedSegment::note_handed_out_until(const std::byte* end) {
  highest_ = std::max(highest_, static_cast<std::size_t>(end - range_.data()));
  if (highest_ <= dumped_) return;
  const std::size_t until = std::min(base::round_up(highest_, kDumpStep), range_.size());
  syscall(SYS_madvise, range_.data() + dumped_, until - dumped_, MADV_DODUMP);
  dumped_ = until;
}

std::byte* PagedSegment::obtain(std::size_t bytes, std::size_t alignment) {
  make_sure_of_budget(bytes);
  std::lock_guard lock(runs_mutex_);
  std::byte* at = runs_.obtain(bytes, alignment);
  if (at == nullptr) return nullptr;
  note_handed_out_until(at + bytes);
  handed_out_.fetch_add(bytes, std::memory_order_relaxed);
  return at;
}

bool PagedSegment::extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) {
  make_sure_of_budget(new_bytes - bytes);
  std::lock_guard lock(runs_mutex_);
  if (!runs_.extend(at, bytes, new_bytes)) return false;
  note_handed_out_until(at + new_bytes);
  handed_out_.fetch_add(new_bytes - bytes, std::memory_order_relaxed);
  return true;
}

void PagedSegment::discard(std::byte* at, std::size_t bytes) {
  AtTheTables working;
  if (!is_paging()) {
    std::shared_lock life(life_);
    if (!is_paging()) {
      drop_plain(at, bytes);
      return;
    }
  }
  pager_->discard(static_cast<pager::PageNumber>(at - range_.data()) / kPageBytes, bytes / kPageBytes);
}

// Plain memory only grows between two drops: seen before them, and at the end, no peak is missed by much.
void PagedSegment::drop_plain(std::byte* at, std::size_t bytes) {
  if (dropped_.fetch_add(bytes, std::memory_order_relaxed) + bytes >= kDroppedBetweenLooks) {
    dropped_.store(0, std::memory_order_relaxed);
    budget_.note_use();
  }
  syscall(SYS_madvise, at, bytes, MADV_DONTNEED);
}

void PagedSegment::give_back(std::byte* at, std::size_t bytes) {
  discard(at, bytes);
  std::lock_guard lock(runs_mutex_);
  runs_.give_back(at, bytes);
  handed_out_.fetch_sub(bytes, std::memory_order_relaxed);
}

void PagedSegment::renew(std::byte* at, std::size_t bytes) {
  discard(at, bytes);
  if (locked_.load(std::memory_order_relaxed)) syscall(SYS_munlock, at, bytes);
  if (!foreign_.load(std::memory_order_relaxed)) {
    syscall(SYS_mprotect, at, bytes, PROT_READ | PROT_WRITE);
    return;
  }
  AtTheTables working;
  std::shared_lock life(life_);  // paging does not start in between: it would not watch these pages
  syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0L);
  syscall(SYS_madvise, at, bytes, MADV_NOHUGEPAGE);
  if (!is_paging()) return;
  if (Status watched = view_->userfault().register_range(at, bytes); !watched) give_up(watched.error());
  // What a neighbour's fault filled in while nobody watched is not there.
  pager_->discard(static_cast<pager::PageNumber>(at - range_.data()) / kPageBytes, bytes / kPageBytes);
}

void PagedSegment::unmap(std::byte* at, std::size_t bytes) {
  renew(at, bytes);
  std::lock_guard lock(runs_mutex_);
  handed_out_.fetch_sub(runs_.give_back_taken(at, bytes), std::memory_order_relaxed);
}

void PagedSegment::unlock_range() {
  syscall(SYS_munlock, range_.data(), range_.size());
  if (is_paging()) view_->unlock_staging();
}

void PagedSegment::make_sure_of_budget(std::size_t more) {
  if (is_paging()) return;
  AtTheTables working;
  std::unique_lock life(life_);
  if (is_paging()) return;
  const std::size_t handed_out = handed_out_.load(std::memory_order_relaxed) + more;
  const bool seen = records_pages() && handed_out > options_.record_window;
  if (!seen && budget_.promise(handed_out)) return;
  if (Status started = start_paging(); !started) give_up(started.error());
}

Status PagedSegment::start_recording() {
  const std::uint64_t window_pages = std::max<std::uint64_t>(options_.record_window / kPageBytes, 1);
  auto recorder = pager::PageRecorder::make(options_.record_pages + "." + std::to_string(getpid()),
                                            {reinterpret_cast<std::uintptr_t>(range_.data()), window_pages},
                                            range_.size() / kPageBytes);
  if (!recorder) return fail(std::move(recorder.error()));
  recording_ = std::make_unique<pager::PageRecording>(std::move(*recorder), *view_, *map_, budget_, window_pages);
  return {};
}

Status PagedSegment::start_paging() {
  auto store = open_store(options_.store, {.block_bytes = kPageBytes,
                                           .lifetime = Lifetime::kScratch,
                                           .use_io_uring = !options_.disable.has(base::Feature::kIoUring)});
  if (!store) return fail(std::move(store.error()));
  store_ = std::move(*store);
  const std::uint64_t pages = range_.size() / kPageBytes;
  auto map = BlockMap::make(*store_, pages);
  if (!map) return fail(std::move(map.error()));
  map_ = std::move(*map);
  syscall(SYS_madvise, range_.data(), range_.size(), MADV_NOHUGEPAGE);
  auto view = pager::KernelView::make(range_.data(), range_.size(), wanted_features(options_));
  if (!view) return fail(std::move(view.error()));
  view_ = std::move(*view);
  if (records_pages()) {
    if (Status started = start_recording(); !started) return started;
  }
  pager::View& view_of_pager = recording_ ? static_cast<pager::View&>(recording_->view) : *view_;
  pager::Backing& backing = recording_ ? static_cast<pager::Backing&>(recording_->backing) : *map_;
  pager::Budget& budget = recording_ ? static_cast<pager::Budget&>(recording_->budget) : budget_;
  auto pager = pager::Pager::make(view_of_pager, backing, budget, run_page_.counters, pager_options(options_, pages));
  if (!pager) return fail(std::move(pager.error()));
  pager_ = std::move(*pager);
  adopt_what_is_in_memory();
  loop_ = std::make_unique<pager::FaultLoop>(
      *pager_, *view_, run_page_,
      pager::FaultLoopOptions{.most_handlers = options_.handlers,
                              .buffer_pages = static_cast<std::uint32_t>(options_.block_max / kPageBytes)});
  if (Status started = loop_->start(); !started) return started;
  run_page_.counters.paging_processes.fetch_add(1);
  base::log(base::LogLevel::kInfo, "process {} is near its budget: pages go to {}", getpid(), store_->describe());
  paging_.store(true, std::memory_order_release);
  return {};
}

// The range is registered already: what is not here now comes through the pager.
void PagedSegment::adopt_what_is_in_memory() {
  std::size_t end;
  {
    std::lock_guard lock(runs_mutex_);
    end = highest_ / kPageBytes;
  }
  constexpr std::size_t kAtOnce = 512;
  os::PageEntry entries[kAtOnce];
  for (std::size_t first = 0; first < end; first += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, end - first);
    // Unknown pages are no loss: they stay in view, outside of the budget.
    if (!os::read_page_map(range_.data() + first * kPageBytes, {entries, count})) break;
    for (std::size_t i = 0; i < count;) {
      std::size_t stop = i;
      while (stop < count && entries[stop].present) ++stop;
      const pager::PageRun run{first + i, static_cast<std::uint32_t>(stop - i)};
      if (run.count != 0 && recording_) recording_->recorder->came(run);
      if (run.count != 0) pager_->adopt(run);
      i = stop + 1;
    }
  }
}

bool PagedSegment::hint(pager::HintKind kind, const void* at, std::size_t bytes) {
  if (!is_paging() || !contains(at) || bytes == 0) return false;
  if (recording_) return true;  // pages come when they are used, and not before
  AtTheTables working;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - range_.data());
  const std::size_t end = std::min(offset + bytes, range_.size());
  const std::size_t first = offset / kPageBytes;
  pager_->hint(kind, first, base::pages_for(end) - first);
  return true;
}

// From here on no signal comes: until the fork is over nothing leaves, and a handler that needs a page could wait for
// room in vain.
void PagedSegment::pause_eviction() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  base::InsideRuntime inside;
  fork_.lock();  // two threads may fork at once
  before_fork_ = before;
  if (is_paging()) pager_->pause_eviction(true);
}

void PagedSegment::lock_for_fork() {
  base::InsideRuntime inside;
  life_.lock();
  runs_mutex_.lock();
  if (!is_paging()) return;
  pager_->freeze();
  map_->lock_for_fork();
}

void PagedSegment::unlock_in_parent() {
  base::InsideRuntime inside;
  budget_.shares_memory();
  if (is_paging()) {
    map_->unlock_after_fork(true);
    pager_->thaw();
  }
  runs_mutex_.unlock();
  life_.unlock();
  const sigset_t before = before_fork_;
  fork_.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void PagedSegment::unlock_in_child() {
  base::InsideRuntime inside;
  budget_.renew_in_child();
  budget_.shares_memory();
  if (is_paging()) {
    map_->unlock_in_child();
    if (recording_) recording_->recorder->stop_in_child();
    pager_->thaw_in_child();
    if (Status renewed = view_->renew_in_child(); !renewed) give_up(renewed.error());
    if (Status started = loop_->start_in_child(); !started) give_up(started.error());
    run_page_.counters.paging_processes.fetch_add(1);
  }
  runs_mutex_.unlock();
  new (&life_) std::shared_mutex;
  fork_.unlock();
  pthread_sigmask(SIG_SETMASK, &before_fork_, nullptr);
}

}  // namespace farheap::segment
