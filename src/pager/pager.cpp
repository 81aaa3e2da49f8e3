// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/pager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "base/log.hpp"

namespace farheap::pager {

Result<std::unique_ptr<Pager>> Pager::make(View& view, Backing& backing, Budget& budget, base::RunCounters& counters,
                                           PagerOptions options) {
  if (backing.has_owners() && !options.track_changes) {
    return fail(ErrorCode::kInvalidArgument, "cannot page what has owners", "a pager that tracks no changes",
                "the first write to a page is not seen", "track_changes");
  }
  auto table = PageTable::make(options.capacity_pages);
  if (!table) return fail(std::move(table.error()));
  table->note_for_cores(options.core_pages);
  Changes changes;
  if (options.track_changes) {
    auto made = Changes::make(options.capacity_pages);
    if (!made) return fail(std::move(made.error()));
    changes = std::move(*made);
  }
  return std::unique_ptr<Pager>(
      new Pager(view, backing, budget, counters, std::move(options), std::move(*table), std::move(changes)));
}

Pager::Pager(View& view, Backing& backing, Budget& budget, base::RunCounters& counters, PagerOptions options,
             PageTable table, Changes changes)
    : view_(view),
      backing_(backing),
      counters_(counters),
      options_(std::move(options)),
      has_owners_(backing.has_owners()),
      table_(std::move(table)),
      earlier_(table_, backing_, options_.lost, changes.tracked()),
      changes_(std::move(changes)),
      cut_(view_, table_, changes_, options_.keep_changes),
      policy_(options_.policy, table_),
      probation_(table_, options_.probation_percent),
      around_(options_.block_min_pages, options_.block_max_pages),
      room_(budget),
      evictors_(options_.evictors, room_),
      read_ahead_(table_, earlier_, policy_, room_, evictors_, counters_,
                  {options_.read_ahead_pages, options_.block_max_pages, options_.readers}),
      write_watch_(view_, table_),
      rounds_(options_.evictors) {
  if (!options_.expected_order) return;
  (void)read_ahead_.orders().say(options_.expected_order, OrderFrom::kPlan);
  read_ahead_.expect(options_.expected_order);
}

void Pager::expect(OrderChoice::Order order, OrderFrom from) {
  {
    const Still still(door_, leaving_view_);
    Lock lock(mutex_);
    order = read_ahead_.orders().say(std::move(order), from);
    if (from == OrderFrom::kNextPhase) read_ahead_.leave_round();
  }
  expect_chosen();
}

// Faults wait for the mutex: the tables of an order of millions of visits are made before it is taken, and those of
// the one before are freed after it. Meanwhile another one may be said.
void Pager::expect_chosen() {
  OrderChoice::Chosen chosen;
  std::unique_ptr<ExpectedOrder> before;
  for (;;) {
    bool in_round = false;
    std::uint64_t memory_pages = 0;
    {
      const Still still(door_, leaving_view_);
      Lock lock(mutex_);
      chosen = read_ahead_.orders().chosen();
      if (read_ahead_.order() == chosen.order.get()) return;
      in_round = chosen.from == OrderFrom::kPlan && read_ahead_.is_in_round();
      memory_pages = room_.limit();
    }
    std::optional<ExpectedOrder::Tables> tables;
    if (chosen.order) tables.emplace(chosen.order, in_round, memory_pages);
    const Still still(door_, leaving_view_);
    Lock lock(mutex_);
    if (read_ahead_.orders().chosen().order != chosen.order) continue;
    before = read_ahead_.expect(std::move(tables), chosen.from);
    return;
  }
}

OrderState Pager::order_state() {
  base::LockGuard lock(mutex_);
  return read_ahead_.order_state();
}

void Pager::weigh_order() {
  OrderChoice::Order order, over;
  std::uint64_t memory_pages = 0;
  bool is_over = false;
  {
    base::LockGuard lock(mutex_);
    is_over = read_ahead_.is_said_order_over();
    if (is_over) over = read_ahead_.orders().say(nullptr, OrderFrom::kProgram);
    order = read_ahead_.order_to_weigh();
    memory_pages = room_.limit();
  }
  if (is_over) return expect_chosen();
  if (!order) return;
  OrderReads reads(*order, memory_pages);
  base::LockGuard lock(mutex_);
  read_ahead_.weigh(*order, reads);
}

void Pager::adopt(PageRun run) {
  const Still still(door_, leaving_view_);
  constexpr std::uint32_t kPages = 64;  // memory filled before the pager came leaves in pieces of 256 KiB
  Lock lock(mutex_);
  while (run.count != 0) {
    if (table_.state(run.first) != PageState::kFresh) {  // a fault was faster
      run = {run.first + 1, run.count - 1};
      continue;
    }
    const std::uint32_t to_boundary = kPages - static_cast<std::uint32_t>(run.first % kPages);
    const std::uint32_t most = std::min(run.count, to_boundary);
    std::uint32_t count = 1;
    while (count < most && table_.state(run.first + count) == PageState::kFresh) ++count;
    const BlockId id = table_.new_block(run.first, count);
    begin_filling({run.first, count}, id);
    finish_filling({run.first, count}, id, false, false);
    view_.adopted({run.first, count});
    run = {run.first + count, run.count - count};
  }
}

void Pager::leave_block(BlockId id, std::uint32_t pages) {
  Block& block = table_.block(id);
  block.pages -= pages;
  const bool in_probation = block.queue == Queue::kProbation;
  in_probation ? probation_.shrink(pages) : policy_.shrink(id, pages);
  room_.went(pages);
  if (block.pages != 0) return;
  in_probation ? probation_.remove(id) : policy_.remove(id);
  table_.free_block(id);
}

void Pager::drop_from_memory(PageRun run, PageState state, PageState becomes) {
  if (state == PageState::kPresent) {
    view_.drop_view(run);
  } else {
    view_.drop_staging({&run, 1});
  }
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const BlockId id = table_.tag(run.first + i);
    table_.set_state(run.first + i, becomes);
    table_.tag(run.first + i) = 0;
    leave_block(id, 1);
  }
  changes_.note_discarded(run);
}

void Pager::discard_in_extent(PageNumber first, PageNumber end, PageState becomes) {
  // By the commit under way, which has not taken it yet; or has, and writes it to the backing.
  const auto is_held = [&](PageNumber page) {
    mutex_.assume_held();
    return becomes == PageState::kFresh ? changes_.is_waiting(page) : changes_.is_committing(page);
  };
  for (PageNumber page = first; page < end;) {
    if (is_held(page)) {
      moving_.wait(mutex_);
      continue;
    }
    const PageState state = table_.state(page);
    const PageRun run = table_.run_around(page, state, {page, static_cast<std::uint32_t>(end - page)});
    switch (state) {
      case PageState::kFilling:
      case PageState::kTakingOut:
      case PageState::kDropping:
      case PageState::kWriting: moving_.wait(mutex_); continue;  // on its way: look again when it has come to rest
      case PageState::kPresent:
      case PageState::kProbation: {
        const auto busy = [&](PageNumber one) { return table_.block(table_.tag(one)).busy; };
        if (busy(page)) {
          moving_.wait(mutex_);
          continue;
        }
        PageRun idle{page, 1};
        for (PageNumber next = page + 1; idle.count < run.count && !busy(next) && !is_held(next); ++next) {
          ++idle.count;
        }
        if (state == PageState::kProbation) view_.forgotten(idle);
        drop_from_memory(idle, state, becomes);
        page += idle.count;
        continue;
      }
      case PageState::kStored:
      case PageState::kFresh:
        if (state == PageState::kStored) view_.forgotten(run);
        for (std::uint32_t i = 0; state != becomes && i < run.count; ++i) {
          table_.set_state(run.first + i, becomes);
          table_.tag(run.first + i) = 0;
        }
        break;
    }
    page += run.count;
  }
}

void Pager::discard(PageNumber first, std::uint64_t count) {
  const PageNumber end = first + count;
  for (PageNumber from = first; from < end;) {
    const PageNumber stop = std::min<PageNumber>((from / kExtentPages + 1) * kExtentPages, end);
    {
      const Still still(door_, leaving_view_);
      Lock lock(mutex_);
      moving_.wait_for_thaw(mutex_);
      earlier_.learn(from);
      kept_.remove(from, stop);
      table_.stream_no_more(from, stop);
      if (table_.find(from) != nullptr) {
        discard_in_extent(from, stop, PageState::kFresh);
        moving_.begin();  // a fork in between would leave the child's map with slots that no page of it has
        lock.unlock();
        backing_.forget({from, static_cast<std::uint32_t>(stop - from)});
        lock.lock();
        moving_.end();
      }
    }
    from = stop;
  }
  freed_.notify_all();
}

void Pager::hint(const Hint& said) {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  const PageNumber first = std::min<PageNumber>(said.first, table_.capacity_pages());
  const PageNumber end = first + std::min<PageNumber>(said.count, table_.capacity_pages() - first);
  if (first == end) return;
  switch (said.kind) {
    case HintKind::kNone: return;
    case HintKind::kWillNeed: return read_ahead_.need(first, end);
    case HintKind::kExpect: return expect(first, end);
    case HintKind::kLoopForward: return read_ahead_.loop_begins(first, end, false);
    case HintKind::kLoopBackward: return read_ahead_.loop_begins(first, end, true);
    case HintKind::kStream:
    case HintKind::kKeep:
    case HintKind::kDoneWith:
    case HintKind::kNormal: note_hint(said.kind, first, end);
  }
  if (said.kind == HintKind::kKeep) return keep(first, end);
  keep_no_more(first, end);
  if (said.kind == HintKind::kDoneWith) put_out(first, end);
}

void Pager::note_hint(HintKind kind, PageNumber first, PageNumber end) {
  if (kind == HintKind::kStream) {
    table_.stream_from_the_first_touch(first, end);
  } else {
    table_.stream_no_more(first, end);
  }
  for (PageNumber page = first / kExtentPages * kExtentPages; page < end; page += kExtentPages) {
    Extent* const extent = table_.find(page);
    if (extent == nullptr) continue;
    const bool was_done_with = extent->hint == HintKind::kDoneWith;
    extent->hint = kind == HintKind::kNormal ? HintKind::kNone : kind;
    if (!was_done_with || kind == HintKind::kDoneWith) continue;
    for (PageNumber at = std::max(page, first); at < std::min<PageNumber>(page + kExtentPages, end); ++at) {
      if (is_in_memory(table_.state(at))) table_.block(table_.tag(at)).leave_first = false;
    }
  }
}

void Pager::keep(PageNumber first, PageNumber end) {
  kept_.add(first, end);
  table_.for_each_run(first, end, PageState::kPresent, 0, [&](PageRun run) {
    mutex_.assume_held();
    for (std::uint32_t i = 0; i < run.count; ++i) policy_.keep(table_.tag(run.first + i), room_.limit());
  });
}

void Pager::keep_no_more(PageNumber first, PageNumber end) {
  kept_.remove(first, end);
  if (policy_.kept_pages() == 0) return;
  table_.for_each_run(first, end, PageState::kPresent, 0, [&](PageRun run) {
    mutex_.assume_held();
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const BlockId id = table_.tag(run.first + i);
      const Block& block = table_.block(id);
      if (!kept_.overlap(block.first, block.first + block.count)) policy_.keep_no_more(id);
    }
  });
}

void Pager::keep_if_said(BlockId id) {
  const Block& block = table_.block(id);
  if (kept_.overlap(block.first, block.first + block.count)) policy_.keep(id, room_.limit());
}

// Blocks on their way are only marked: they leave before others, or at once when the program says it again. So nobody
// waits here, whatever the store does. A block that reaches over the edge stays: not all of it is done with.
void Pager::put_out(PageNumber first, PageNumber end) {
  for (PageNumber page = first; page < end;) {
    if (page % kExtentPages == 0) door_.let_through(mutex_);
    if (table_.find(page) == nullptr) {
      page = (page / kExtentPages + 1) * kExtentPages;
      continue;
    }
    const PageState state = table_.state(page);
    const PageNumber at = page++;
    if (!is_in_memory(state)) continue;
    const BlockId id = table_.tag(at);
    Block& block = table_.block(id);
    if (block.first < first || block.first + block.count > end) continue;
    const bool was_said = block.leave_first;
    block.leave_first = true;
    if (state == PageState::kProbation && block.queue == Queue::kProbation && !was_said) {
      probation_.remove(id);
      probation_.push_oldest(id);
    }
    if (state != PageState::kPresent || block.busy) continue;
    policy_.leaves_next(id);
    if (!moving_.may_evict()) continue;
    policy_.remove(id);
    take_out(id);
  }
  evictors_.wake();
}

// As a marker of the read-ahead: touching it proves nothing of the rest of its block, nor of probation.
bool Pager::watch(PageNumber page) {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  if (!moving_.may_evict() || table_.state(page) != PageState::kPresent) return false;
  BlockId id = table_.tag(page);
  if (table_.block(id).busy || !policy_.may_take(id)) return false;
  if (table_.block(id).pages > 1) {
    id = policy_.split_page(id, page);
  } else {
    policy_.remove(id);
  }
  table_.block(id).marker = true;
  leaving_view_.assume_held();
  take_out(id);
  return table_.state(page) != PageState::kPresent;  // the kernel may hold on to it
}

void Pager::tell_in_view(PageNumber first, std::uint64_t count, const std::function<void(PageRun)>& to) {
  constexpr std::uint64_t kAtOnce = 4096;  // faults wait meanwhile
  const PageNumber end = first + count;
  for (PageNumber at = first; at < end; at += kAtOnce) {
    const Still still(door_, leaving_view_);
    Lock lock(mutex_);
    table_.for_each_run(at, std::min(at + kAtOnce, end), PageState::kPresent, 0, std::ref(to));
  }
}

// A store that stumbles is asked again before anything is given up; what it says for certain is believed at once.
static Status patiently(const std::function<Status()>& attempt) {
  Status status = attempt();
  for (int tries = 0; !status && tries < 5; ++tries) {
    const ErrorCode code = status.error().code;
    if (code == ErrorCode::kCorrupt || code == ErrorCode::kNoSpace || code == ErrorCode::kUnavailable) break;
    base::log(base::LogLevel::kWarn, "{}; trying again", status.error().message());
    base::sleep_for(std::chrono::milliseconds(10 << (2 * tries)));
    status = attempt();
  }
  return status;
}

Status Pager::read_patiently(std::span<const Backing::Read> reads) {
  return patiently([&] { return backing_.read(reads); });
}

Status Pager::flush_patiently(std::uint64_t& from) {
  return patiently([&] { return backing_.flush_some(from); });
}

Status Pager::ask_stored_patiently(PageNumber first, Backing::Stored& stored) {
  return patiently([&]() -> Status {
    auto answer = backing_.stored_from(first);
    if (!answer) return fail(std::move(answer.error()));
    stored = *answer;
    return {};
  });
}

Status Pager::claim_patiently(PageRun run) {
  return patiently([&] { return backing_.claim(run); });
}

Status Pager::write_patiently(std::span<const Backing::Write> writes) {
  return patiently([&] { return backing_.write(writes); });
}

bool Pager::is_within_limit() {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  room_.refresh();
  const bool is_within = !room_.lacks(0);
  if (!is_within) evictors_.wake();
  return is_within;
}

bool Pager::is_making_room() {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  return room_.sought() != 0 || room_.leaving() != 0;
}

void Pager::pause_eviction(bool on) {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  moving_.pause_eviction(on);
  if (on && flush_list_.is_on()) {
    flush_list_.give_up_guards(table_.pages_end(), [&](PageRun run) { view_.release(run); });
  }
}

void Pager::freeze() {
  const Still still(door_, leaving_view_);
  mutex_.lock();
  moving_.freeze(mutex_);
}

void Pager::thaw() {
  moving_.thaw();
  freed_.notify_all();
  mutex_.unlock();
}

void Pager::thaw_in_child() {
  // The parent's threads, some of which waited, are not here.
  room_.forget_threads();
  read_ahead_.forget_requests();
  evictors_.forget_threads();
  new (&door_) FaultDoor;
  new (&leaving_view_) base::SharedMutex;
  new (&mutex_) base::Mutex;
  new (&moving_) Moving;
  new (&freed_) base::Condition;
}

std::uint64_t Pager::resident_pages() const {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  return room_.resident();
}

std::uint64_t Pager::page_limit() const {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  return room_.limit();
}

PageState Pager::state(PageNumber page) const {
  const Still still(door_, leaving_view_);
  Lock lock(mutex_);
  return table_.state(page);
}

std::string Pager::check() const {
  Lock lock(mutex_);
  if (door_.is_wanted()) return fmt::format("{} faults are at the door, though all is quiet", door_.waiting());
  std::uint64_t in_memory = 0, probation = 0;
  for (PageNumber page = 0; page < table_.capacity_pages(); ++page) {
    const Extent* extent = table_.find(page);
    if (extent == nullptr) {
      page += kExtentPages - 1;
      continue;
    }
    const PageState state = extent->state[page % kExtentPages];
    if (page % kExtentPages == 0) {
      const auto present = std::count(std::begin(extent->state), std::end(extent->state), PageState::kPresent);
      if (present != extent->present)
        return fmt::format("{} pages in view from page {} on, {} counted", present, page, extent->present);
    }
    if (state == PageState::kFilling || state == PageState::kTakingOut || state == PageState::kWriting ||
        state == PageState::kDropping) {
      return fmt::format("page {} is on its way (state {}), though nothing moves", page, static_cast<int>(state));
    }
    const bool is_guarded = flush_list_.is_on() && flush_list_.is_guarded(page);
    if (is_guarded && (state != PageState::kPresent || flush_list_.is_listed(page)))
      return fmt::format("page {} (state {}) is guarded, and should not be", page, static_cast<int>(state));
    if (state != PageState::kPresent && state != PageState::kProbation) continue;
    if (flush_list_.is_on() && state == PageState::kPresent && !is_guarded && !flush_list_.is_listed(page))
      return fmt::format("page {} can be written to, and no flush looks at it", page);
    ++in_memory;
    const Block& block = table_.block(extent->tag[page % kExtentPages]);
    if (page < block.first || page >= block.first + block.count)
      return fmt::format("page {} names a strange block", page);
    const bool in_probation = block.queue == Queue::kProbation;
    if (block.queue == Queue::kNone || in_probation != (state == PageState::kProbation)) {
      return fmt::format("page {} has state {} in queue {}", page, static_cast<int>(state),
                         static_cast<int>(block.queue));
    }
    probation += in_probation;
  }
  if (in_memory != room_.resident()) return fmt::format("{} pages in memory, {} counted", in_memory, room_.resident());
  if (probation != probation_.pages())
    return fmt::format("{} pages in probation, {} counted", probation, probation_.pages());
  if (policy_.pages() + probation != room_.resident())
    return fmt::format("lists hold {} pages of {}", policy_.pages() + probation, room_.resident());
  return {};
}

}  // namespace farheap::pager
