// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "segment/paged_segment.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/inside_runtime.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "os/drop_memory.hpp"
#include "pager/said_order.hpp"
#include "segment/address_slots.hpp"
#include "segment/at_the_tables.hpp"
#include "segment/patience.hpp"
#include "store/uri.hpp"

namespace farheap::segment {

using base::kPageBytes;

namespace {

// To look costs tens of microseconds, to drop so much and to touch it again some milliseconds.
constexpr std::size_t kDroppedBetweenLooks = 4 * base::kMiB;
// A process with less is not worth the threads of paging; it may keep as much whatever the budget.
constexpr std::size_t kForksFreely = 4 * base::kMiB;
// A process keeps 1,024 pages whatever the budget (TreeBudget): what it had beside them would be too much.
constexpr std::uint64_t kLeastForTier = 2048;
constexpr std::size_t kStackPagesInUseByForks = 16;
constexpr std::chrono::microseconds kLookForRoom(200);  // before a fork
constexpr std::size_t kRecordedFrom = 4 * base::kMiB;   // how a process with less uses it does not matter
constexpr std::size_t kDumpStep = 32 * base::kMiB;      // so that it is a rare call

os::UserfaultFeatures wanted_features(const base::Options& options, bool tells_writes) {
  const auto has = [&](base::Feature one) { return !options.disable.has(one); };
  return {.move = has(base::Feature::kMove),
          .kernel_faults = has(base::Feature::kKernelFaults),
          .notes_writes = !tells_writes && has(base::Feature::kWpAsync) && has(base::Feature::kPagemapScan)};
}

}  // namespace

void PagedSegment::give_up(const Error& error) {
  base::log(base::LogLevel::kError, "{}", error.message());
  base::log(base::LogLevel::kError, "the program is ended: its data can no longer be kept");
  _exit(base::kStatusNotKept);
}

Result<std::unique_ptr<PagedSegment>> PagedSegment::make(const base::Options& options, base::RunPage& run_page,
                                                         base::Secret secret_store) {
  auto range = os::Mapping::reserve_at(slot_address(options.heap_id), kSlotBytes, os::Access::kReadWrite);
  if (!range) return fail(std::move(range.error()));
  return std::unique_ptr<PagedSegment>(new PagedSegment(options, run_page, std::move(secret_store), std::move(*range)));
}

PagedSegment::PagedSegment(const base::Options& options, base::RunPage& run_page, base::Secret secret_store,
                           os::Mapping range)
    : options_(options),
      run_page_(run_page),
      secret_store_(std::move(secret_store)),
      range_(std::move(range)),
      books_(range_.data(), range_.size()),
      budget_(run_page) {
  run_page_.heap_address.store(reinterpret_cast<std::uintptr_t>(range_.data()), std::memory_order_relaxed);
  syscall(SYS_madvise, range_.data(), range_.size(), MADV_DONTDUMP);
  std::byte* const reservations = books_.first_reservation();
  const auto before = static_cast<std::size_t>(reservations - range_.data());
  syscall(SYS_mprotect, reservations, range_.size() - before, PROT_NONE);
  advise_plain_life();
}

// Huge pages are taken only where they cannot be what brings the budget nearer.
void PagedSegment::advise_plain_life() {
  const bool huge = !options_.disable.has(base::Feature::kHugePages) &&
                    run_page_.budget_bytes.load(std::memory_order_relaxed) >= options_.huge_pages_from;
  syscall(SYS_madvise, range_.data(), range_.size(), huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

void PagedSegment::note_handed_out_until(const std::byte* end) {
  highest_ = std::max(highest_, static_cast<std::size_t>(end - range_.data()));
  if (highest_ <= dumped_) return;
  const std::size_t until = std::min(base::round_up(highest_, kDumpStep), range_.size());
  syscall(SYS_madvise, range_.data() + dumped_, until - dumped_, MADV_DODUMP);
  dumped_ = until;
  if (core_index_) core_index_->hold_until(dumped_);
}

std::byte* PagedSegment::obtain(std::size_t bytes, std::size_t alignment) {
  make_sure_of_budget(bytes);
  AtTheBooks working(runs_mutex_);
  std::byte* at = books_.obtain(bytes, alignment);
  if (at == nullptr) return nullptr;
  if (!open_run(at, bytes, PROT_READ | PROT_WRITE)) {
    books_.give_back(at, bytes);
    return nullptr;
  }
  note_handed_out_until(at + bytes);
  count_anew();
  return at;
}

bool PagedSegment::extend(std::byte* at, std::size_t bytes, std::size_t new_bytes) {
  return obtain_at(at + bytes, new_bytes - bytes, PROT_READ | PROT_WRITE);
}

void PagedSegment::discard(std::byte* at, std::size_t bytes) {
  if (!is_paging()) {
    AtTheTables working;
    base::SharedGuard life(life_);
    if (!is_paging()) {
      if (has_early_hints_.load(std::memory_order_relaxed)) {
        const auto first = static_cast<std::size_t>(at - range_.data()) / kPageBytes;
        base::LockGuard lock(runs_mutex_);
        early_hints_.forget(first, first + bytes / kPageBytes);
      }
      return drop_plain(at, bytes);
    }
  }
  paging_->discard(at, bytes);
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
  AtTheBooks working(runs_mutex_);
  books_.give_back(at, bytes);
  count_anew();
}

void PagedSegment::unlock_range() {
  syscall(SYS_munlock, range_.data(), range_.size());
  if (is_paging()) paging_->view().unlock_staging();
}

void PagedSegment::make_sure_of_budget(std::size_t more) {
  if (is_paging()) return;
  AtTheTables working;
  base::LockGuard life(life_);
  if (is_paging()) return;
  const std::size_t handed_out = handed_out_.load(std::memory_order_relaxed) + more;
  const bool seen = (records_pages() && handed_out > options_.record_window) ||
                    (!options_.record_into.empty() && !unrecorded_ && handed_out > kRecordedFrom);
  if (!seen && budget_.promise(handed_out)) return;
  Status started = start_paging(guards_.has_views());
  if (started) return;
  // What was to be seen only, and did not begin, goes on without.
  if (!seen || records_pages() || paging_ || !budget_.promise(handed_out)) give_up(started.error());
  unrecorded_ = true;
  base::log(base::LogLevel::kWarn, "the use of pages is not recorded: {}", started.error().message());
}

// For the sake of cores it has a name, which the tool takes away when all has ended well.
Status PagedSegment::open_the_store() {
  store_uri_ = options_.store;
  if (options_.whole_core) {
    const auto now = base::Clock::now().time_since_epoch().count();
    store_uri_ = store::place_inside(store_uri_, fmt::format("{}-{}", getpid(), now));
  }
  std::string uri = secret_store_.empty() ? store_uri_ : std::string(secret_store_.view());
  auto store = open_store(uri, {.block_bytes = kPageBytes,
                                .lifetime = options_.whole_core ? Lifetime::kKeep : Lifetime::kScratch,
                                .use_io_uring = !options_.disable.has(base::Feature::kIoUring),
                                .encrypt_key_file = options_.encrypt_key_file,
                                .password_file = options_.store_password_file});
  base::wipe(uri);
  if (!store) return fail(std::move(store.error()));
  secret_store_ = {};
  store_ = std::move(*store);
  return {};
}

Status PagedSegment::prepare_for_cores() {
  auto* const staging = const_cast<std::byte*>(paging_->view().staging(0));
  auto index = pager::CoreIndex::make(range_.data(), staging, range_.size() / kPageBytes, store_uri_);
  if (!index) return fail(std::move(index.error()));
  base::LockGuard lock(runs_mutex_);
  core_index_ = std::move(*index);
  core_index_->hold_until(dumped_);
  map_->note_for_cores(core_index_->pages());
  return {};
}

// Not for recordings, in which each use is to be seen, nor for cores, which the tool fills from the store.
void PagedSegment::make_tier(std::uint64_t pages) {
  if (!options_.tier || records_pages() || options_.whole_core) return;
  const std::uint64_t budget = run_page_.budget_bytes.load(std::memory_order_relaxed);
  const auto written = [this](pager::PageRun run) {
    run_page_.counters.bytes_written.fetch_add(run.count * kPageBytes, std::memory_order_relaxed);
    paging_->pager().heat(run.first, base::Heat::kBytesWritten, run.count * kPageBytes);
  };
  auto made = Tier::make(*map_, budget_,
                         {.capacity_pages = pages, .most_bytes = budget / 2, .least_pages = kLeastForTier}, written);
  if (made) {
    tier_ = std::move(*made);
  } else {
    base::log(base::LogLevel::kInfo, "{}; pages leave memory as they are", made.error().message());
  }
}

PagingSettings PagedSegment::paging_settings() const {
  PagingSettings settings;
  settings.handlers = options_.handlers;
  settings.observer = observer_;
  settings.companion = companion_;
  settings.make_recording = make_recording_;
  settings.make_sampling = make_sampling_;
  pager::PagerOptions& result = settings.pager;
  result.policy = options_.policy;
  result.block_min_pages = static_cast<std::uint32_t>(options_.block_min / kPageBytes);
  result.block_max_pages = static_cast<std::uint32_t>(options_.block_max / kPageBytes);
  result.read_ahead_pages = options_.read_ahead / kPageBytes;
  result.readers = kReaders;
  result.evictors = evictors_for(options_.evictors, options_.store);
  result.probation_percent = options_.probation;
  result.wait_when_full = options_.on_full == base::OnFull::kPause;
  result.lost = give_up;
  if (records_pages()) {  // what comes is what was used, and nothing else
    result.block_min_pages = result.block_max_pages = 1;
    result.read_ahead_pages = 0;
    result.evictors = 1;
    return settings;
  }
  if (known_order_) result.expected_order = known_order_();
  if (!result.expected_order) settings.order_source = order_source_;
  return settings;
}

Status PagedSegment::start_paging(bool tells_writes) {
  if (Status opened = open_the_store(); !opened) return opened;
  auto map = BlockMap::make(*store_, range_.size() / kPageBytes);
  if (!map) return fail(std::move(map.error()));
  map_ = std::move(*map);
  auto made =
      Paging::make(range_, wanted_features(options_, tells_writes), fault_queues_for(options_.fault_queues), run_page_);
  if (!made) return fail(std::move(made.error()));
  paging_ = std::move(*made);
  drop_what_nobody_has();
  PagingSettings wanted = paging_settings();
  wanted.heat = &budget_.start_heat();
  make_tier(range_.size() / kPageBytes);
  pager::Backing& backing = tier_ ? static_cast<pager::Backing&>(*tier_) : *map_;
  pager::Budget& budget = tier_ ? tier_->budget() : budget_;
  wanted.pager.says_soon = tier_ != nullptr;
  if (options_.whole_core) {
    if (Status prepared = prepare_for_cores(); !prepared) return prepared;
    wanted.pager.core_pages = core_index_->pages();
  }
  Status started = paging_->start(backing, budget, std::move(wanted), [this] { return own_runs(); });
  if (!started) return started;
  tell_early_hints();  // what is adopted may leave at once
  adopt_what_is_in_memory();
  if (early_order_) paging_->pager().expect(std::exchange(early_order_, nullptr), pager::OrderFrom::kProgram);
  base::log(base::LogLevel::kInfo, "process {} is near its budget: pages go to {}", getpid(), store_->describe());
  is_paging_.store(true, std::memory_order_release);
  // Of what is recorded only the faults are known.
  if (!records_pages()) {
    guards_.begin(range_.data(), range_.size() / kPageBytes,
                  static_cast<std::uint32_t>(options_.block_max / kPageBytes), paging_->pager());
  }
  return {};
}

void PagedSegment::tell_early_hints() {
  std::vector<pager::Hint> hints;
  {
    base::LockGuard lock(runs_mutex_);
    hints = early_hints_.take();
  }
  for (const pager::Hint& one : hints) {
    (void)paging_->hint(one.kind, range_.data() + one.first * kPageBytes, one.count * kPageBytes);
  }
}

// Others than those that last need nothing: all is in memory.
bool PagedSegment::hint_early(pager::HintKind kind, const void* at, std::size_t bytes) {
  if (!contains(at) || bytes == 0) return false;
  const bool ends = kind == pager::HintKind::kDoneWith || kind == pager::HintKind::kNormal;
  if (!EarlyHints::lasts(kind) && !(ends && has_early_hints_.load(std::memory_order_relaxed))) return true;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(at) - range_.data());
  const std::size_t end = offset + std::min(bytes, range_.size() - offset);
  AtTheTables working;
  {
    base::SharedGuard life(life_);
    if (!is_paging()) {
      base::LockGuard lock(runs_mutex_);
      early_hints_.say(kind, offset / kPageBytes, base::pages_for(end));
      has_early_hints_.store(true, std::memory_order_relaxed);
      return true;
    }
  }
  return paging_->hint(kind, at, bytes);  // it has begun meanwhile
}

bool PagedSegment::expect_order(std::span<const farheap_step> steps, std::size_t round) {
  if (is_paging()) return paging_->expect_order(steps, round);
  const std::span<const std::byte> range(range_.data(), range_.size());
  if (!steps.empty() && !pager::begins_in(range, steps[0])) return false;
  AtTheTables working;
  auto order = pager::said_order(range, steps, round);
  {
    base::LockGuard life(life_);
    if (!is_paging()) {
      std::swap(order, early_order_);
      return true;
    }
  }
  return paging_->expect_order(steps, round);  // it has begun meanwhile
}

Status PagedSegment::observe_for_a_while(pager::FaultObserver& observer) {
  return paging_->observe(observer, [this] {
    base::LockGuard lock(runs_mutex_);
    return books_.counted_runs();
  }());
}

AddressBooks::Runs PagedSegment::own_runs() {
  base::LockGuard lock(runs_mutex_);
  return books_.own_runs();
}

// A huge page reaches behind what was handed out, and the kernel may make one where most of it was dropped. Who is
// handed such pages would fill them unseen: the pager would take them for fresh, and neither discard nor flush them.
// Requires: the range has no huge pages any more, so none comes after this.
void PagedSegment::drop_what_nobody_has() {
  base::LockGuard lock(runs_mutex_);  // they stay nobody's meanwhile
  // What is locked where the kernel cannot drop it are zeros that stay.
  for (const auto& [at, bytes] : books_.empty_runs()) (void)os::drop_though_locked(at, bytes);
}

// The range is registered already: what is not here now comes through the pager.
void PagedSegment::adopt_what_is_in_memory() {
  AddressBooks::Runs runs;
  {
    base::LockGuard lock(runs_mutex_);
    runs = books_.counted_runs();
  }
  for (const auto& [at, bytes] : runs) knows_all_ &= paging_->adopt(at, bytes);
}

Status PagedSegment::flush() {
  AtTheTables working;
  if (!is_paging()) {
    base::LockGuard life(life_);
    if (!is_paging()) {
      if (Status started = start_paging(true); !started) return started;
    }
  }
  if (!knows_all_) {
    return fail(ErrorCode::kUnavailable, "cannot flush the heap", "its pages",
                "this process may not see which of them are in memory", "let it read /proc/self/pagemap");
  }
  base::LockGuard one(flush_);
  if (flush_buffer_.data() == nullptr) {
    auto made = os::Mapping::reserve(pager::Pager::kFlushPages * kPageBytes, os::Access::kReadWrite);
    if (!made) return fail(std::move(made.error()));
    flush_buffer_ = std::move(*made);
  }
  touch_stack(__builtin_frame_address(0));
  return paging_->pager().flush(flush_buffer_.data());
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
  if (!is_paging()) make_sure_of_fork();
  if (!is_paging()) return;
  if (budget_.next_child_may_stay()) make_room_for_child();
  paging_->pause_eviction();
  touch_stack(__builtin_frame_address(0));
}

// What is not open is the stack's guard, or not part of it.
void PagedSegment::touch_stack(const void* end) {
  if (!contains(end)) return;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(end) - 1 - range_.data());
  std::byte* at = range_.data() + offset / kPageBytes * kPageBytes;
  for (std::size_t i = 0; i < kStackPagesInUseByForks && contains(at); ++i, at -= kPageBytes) {
    if (holding(at, kPageBytes) != Holding::kOpen) return;
    (void)*reinterpret_cast<volatile std::byte*>(at);
  }
}

// What parent and child copy of what they share asks nobody, unless both page.
void PagedSegment::make_sure_of_fork() {
  base::LockGuard life(life_);
  const std::size_t handed_out = handed_out_.load(std::memory_order_relaxed);
  if (is_paging() || handed_out <= kForksFreely || budget_.fits_twice(handed_out)) return;
  if (Status started = start_paging(guards_.has_views()); !started) give_up(started.error());
}

// Until copies of all that the child is going to share fit, or nothing more leaves. Not asleep with the pager's mutex:
// this thread's stack may lie in the range, and leave meanwhile.
void PagedSegment::make_room_for_child() {
  budget_.make_room_for_child(true);
  Patience patience;
  for (std::uint64_t others = 0;; base::sleep_for(kLookForRoom)) {
    const bool fits = paging_->pager().is_within_limit();
    if (fits && !budget_.others_give_way(others)) return;
    const std::uint64_t packed = tier_ ? tier_->facts().held_bytes : 0;
    const std::uint64_t held = paging_->pager().resident_pages() * kPageBytes + packed + others;
    const bool is_leaving = paging_->pager().is_making_room();
    if (!patience.lasts({.held_bytes = held, .is_for_others = fits, .is_leaving = is_leaving})) return;
  }
}

void PagedSegment::lock_for_fork() {
  base::InsideRuntime inside;
  life_.lock();
  runs_mutex_.lock();
  budget_.expect_child();
  guards_.lock_for_fork();
  if (!is_paging()) return;
  paging_->freeze();
  if (tier_) tier_->lock_for_fork();
  map_->lock_for_fork();
}

void PagedSegment::unlock_in_parent() {
  base::InsideRuntime inside;
  budget_.make_room_for_child(false);
  budget_.forked();
  if (is_paging()) {
    map_->unlock_after_fork(true);
    if (tier_) tier_->unlock_in_parent();
    paging_->thaw();
  }
  guards_.unlock_in_parent();
  runs_mutex_.unlock();
  life_.unlock();
  const sigset_t before = before_fork_;
  fork_.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void PagedSegment::unlock_in_child() {
  base::InsideRuntime inside;
  order_source_ = nullptr;  // it is of the parent's objects
  early_order_ = nullptr;   // the child goes its own way
  budget_.renew_in_child();
  if (is_paging()) {
    map_->unlock_in_child();
    if (tier_) tier_->unlock_in_child();
    const auto own_runs = [this] {
      runs_mutex_.assume_held();
      return books_.own_runs();
    };
    Status thawed = paging_->thaw_in_child(&budget_.start_heat(), own_runs);
    if (!thawed) give_up(thawed.error());
  }
  guards_.unlock_in_child();
  runs_mutex_.unlock();
  new (&life_) base::SharedMutex;
  new (&flush_) base::Mutex;  // another thread of the parent may have had it
  fork_.unlock();
  pthread_sigmask(SIG_SETMASK, &before_fork_, nullptr);
}

}  // namespace farheap::segment
