// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/read_ahead.hpp"

#include <algorithm>

namespace farheap::pager {

namespace {

constexpr std::size_t kMostRequests = 64;   // older ones are no longer ahead of anything
constexpr std::uint32_t kLeastPiece = 256;  // pages, of what is read by several readers
// Of memory, what one stream may have on its way and not touched yet. More would look to the policy as if a sweep had
// passed there (it takes it for one visit while a sixteenth of memory leaves), and be the first to go.
constexpr std::uint64_t kMostAhead = 16;
constexpr std::uint64_t kWindows = 4;                // on their way: one is put into view while the next ones are read
constexpr std::uint64_t kMostAnnounced = 8;          // of memory, by loops that have not begun
constexpr std::uint64_t kMostForeseen = 1ull << 16;  // extents of one loop: more would take long to look at
constexpr std::size_t kMostNeeded = 1 << 16;         // ranges: each waits for its turn
constexpr std::uint64_t kOrderAnnounces = 32;        // a part of memory that is made free for what is expected next
constexpr std::uint64_t kMostOrderAnnounces = 1024;  // ... pages, at most
constexpr PageNumber kBehind = PageNumber{kExtentPages} * 2;  // a loop over rows may still read the one before

}  // namespace

ReadAhead::ReadAhead(PageTable& table, Earlier& earlier, Policy& policy, Room& room, Evictors& evictors,
                     base::RunCounters& counters, ReadAheadOptions options)
    : table_(table),
      earlier_(earlier),
      policy_(policy),
      room_(room),
      evictors_(evictors),
      counters_(counters),
      options_(options),
      streams_(options.block_max_pages * options.readers) {}

// What one stream may bring in at once: all of them together must fit into the list that stream blocks wait in, or
// they would be evicted before they are used.
std::uint64_t ReadAhead::stream_window() const {
  const std::uint64_t share = Policy::stream_share(room_.limit()) / 2 / std::max(streams_.active(), 1u);
  return std::clamp<std::uint64_t>(share, 16, std::uint64_t{options_.block_max_pages} * options_.readers);
}

std::unique_ptr<ExpectedOrder> ReadAhead::expect(std::optional<ExpectedOrder::Tables> tables, OrderFrom from) {
  in_round_ = is_in_round();
  if (order_ && from_ != OrderFrom::kProgram) {
    plan_is_trusted_ = order_->is_trusted() && !order_->is_given_up() && !is_round_left_;
  }
  is_round_left_ = false;
  std::unique_ptr<ExpectedOrder> before = std::move(order_);
  room_.no_longer_announced(announced_for_order_);
  announced_for_order_ = 0;
  if (!tables || orders_known_.is_given_up(from)) return before;
  order_ = std::make_unique<ExpectedOrder>(std::move(*tables), table_, policy_, room_);
  from_ = from;
  ++orders_;
  // As the order before, which was of the same phase of the plan and the objects that lived then.
  if (from != OrderFrom::kProgram && plan_is_trusted_) order_->trust();
  if (from == OrderFrom::kProgram) {
    // Of a heap that was opened nothing is known before: its pages would not come until they are touched.
    for (const PageOrder::Visit& visit : order_->order()->visits()) {
      const PageNumber first = PageNumber{visit.block} * PageOrder::kBlockPages;
      if (first + PageOrder::kBlockPages <= table_.capacity_pages()) {
        earlier_.learn_run(first, first + PageOrder::kBlockPages);
      }
    }
    order_->begin_here();
    announce_order();
  } else if (in_round_ && !order_->is_in_round()) {
    order_->skip_to_round();
  }
  return before;
}

void ReadAhead::expect(std::shared_ptr<const PageOrder> order, OrderFrom from) {
  if (order_ && order_->order() == order.get()) return;
  std::optional<ExpectedOrder::Tables> tables;
  const bool in_round = from == OrderFrom::kPlan && is_in_round();
  if (order) tables.emplace(std::move(order), in_round, room_.limit());
  (void)expect(std::move(tables), from);
}

bool ReadAhead::touched_in_order(PageNumber page) {
  const bool expected = order_->touched(page);
  auto& counter = expected || order_->passed_unseen() ? counters_.touches_expected : counters_.touches_unexpected;
  counter.fetch_add(1, std::memory_order_relaxed);
  note_if_given_up();
  announce_order();
  return expected;
}

void ReadAhead::reads(PageNumber page, std::uint32_t pages) {
  if (!order_ || pages == 0) return;
  order_->reads(page, pages);
  const ExpectedOrder::Reads reads = order_->take_reads();
  counters_.order_bytes_read.fetch_add(reads.happened * base::kPageBytes, std::memory_order_relaxed);
  counters_.order_bytes_expected.fetch_add(reads.expected * base::kPageBytes, std::memory_order_relaxed);
  note_if_given_up();
}

void ReadAhead::marker_went(bool used) {
  if (!order_) return;
  order_->note_marker(used);
  note_if_given_up();
}

// The program itself goes on, and the pager's own policy with it.
void ReadAhead::note_if_given_up() {
  if (!order_->is_given_up() || given_up_ == orders_) return;
  given_up_ = orders_;
  orders_known_.give_up(from_);
  counters_.orders_given_up.fetch_add(1, std::memory_order_relaxed);
  if (order_->has_read_too_much()) counters_.orders_too_dear.fetch_add(1, std::memory_order_relaxed);
}

// Room is made before there is a request, as it takes a while.
void ReadAhead::announce_order() {
  const bool wanted = order_->next().run.count != 0;
  const std::uint64_t pages = wanted ? std::min(room_.limit() / kOrderAnnounces, kMostOrderAnnounces) : 0;
  room_.no_longer_announced(announced_for_order_);
  room_.announce(pages);
  announced_for_order_ = pages;
  if (!wanted) return;
  there_.notify_all();
  if (room_.lacks_announced()) evictors_.wake();
}

void ReadAhead::plan(PageNumber from, std::uint32_t pages, bool backward) {
  if (followed() != nullptr) return;
  const std::uint64_t reach = std::min(options_.pages, room_.limit() / kMostAhead);
  if (reach < Streams::kFirstPages) return streams_.continues_at(from);
  const std::uint64_t most = std::min(stream_window(), std::max<std::uint64_t>(reach / kWindows, Streams::kFirstPages));
  const std::uint32_t window = static_cast<std::uint32_t>(std::min<std::uint64_t>(pages, most));
  PageRun ahead;
  if (backward) {
    if (from == 0) return;
    const PageNumber end = from;
    ahead.first = std::min(end, std::max(end > window ? end - window : 0, loops_.first_of(end)));
    ahead.count = static_cast<std::uint32_t>(end - ahead.first);
    earlier_.learn_run(ahead.first, end);
    streams_.continues_at(end - 1);
    if (table_.next_run(ahead.first, end, PageState::kStored).count == 0) return;
  } else {
    // Pages that are in memory already are skipped, so that the stream finds the far side of them filled, too.
    const PageNumber reached = std::min<PageNumber>(from + reach, table_.capacity_pages());
    const PageNumber end = std::max(from, loops_.end_of(from, reached));
    earlier_.learn_run(from, end);
    const PageNumber first = first_to_request(from, end);
    streams_.continues_between(from, first);
    if (first == end) return;
    // A small rest costs as many faults and reads as a whole window: the next marker asks for it, if there is one. (Of
    // a loop there is none after its end.)
    if (end == reached && end - first < window / 2 && room_.announced() != 0) return;
    ahead = {first, static_cast<std::uint32_t>(std::min<PageNumber>(window, end - first))};
  }
  if (backward) return request({ahead, true, true});
  // A piece for each reader: while one is put into view the next is read.
  const std::uint32_t piece = std::max((ahead.count + options_.readers - 1) / options_.readers, kLeastPiece);
  for (bool first = true; ahead.count != 0; first = false) {
    const PageRun part{ahead.first, std::min(ahead.count, piece)};
    request({part, first, false, true});
    ahead = {ahead.first + part.count, ahead.count - part.count};
  }
}

void ReadAhead::loop_begins(PageNumber first, PageNumber end, bool backward) {
  std::uint32_t gap = 0;
  const bool is_new = loops_.begin(first, end, backward, policy_.left(), room_.limit() / kMostAhead, gap);
  if (is_new) foresee_loop(first, end, backward, gap);

  const std::uint64_t reach = std::min({options_.pages, room_.limit() / kMostAhead, end - first});
  const PageNumber from = backward ? end : first;
  earlier_.learn_run(backward ? end - reach : first, backward ? end : first + reach);
  // In memory already, it needs no stream: there is room for some hundreds.
  if (table_.next_run(backward ? end - reach : first, backward ? end : first + reach, PageState::kStored).count == 0) {
    return;
  }
  // Said again, it asks again, for what was passed over when there was no room.
  if (is_new) streams_.begin(from - (backward ? 1 : 0), backward, options_.block_max_pages);
  // One after the other, as far ahead as a stream is; of a backward one, as ever, one.
  const std::uint64_t windows = backward ? 1 : kWindows;
  for (std::uint64_t i = 0, before = ~room_.announced(); i < windows && room_.announced() != before; ++i) {
    if (room_.announced() > room_.limit() / kMostAnnounced) return;  // many arrays at once
    before = room_.announced();
    plan(from, options_.block_max_pages, backward);
  }
}

// Where the loop comes, and when, counted in pages that leave: as many as it brings in before. `gap`: how many left
// since it came the last time.
void ReadAhead::foresee_loop(PageNumber first, PageNumber end, bool backward, std::uint32_t gap) {
  // A small one is soon over, and what it left behind tells more than that it will come.
  if (gap == 0 ? end - first < room_.limit() : end - first < room_.limit() / kMostAhead) return;
  const PageNumber extents = (end - 1) / kExtentPages - first / kExtentPages + 1;
  if (extents > kMostForeseen) return;
  const auto for_each = [&](auto visit) {
    for (PageNumber i = 0; i < extents; ++i) {
      const PageNumber at = (first / kExtentPages + (backward ? extents - 1 - i : i)) * kExtentPages;
      if (const Extent* extent = table_.find(at)) visit(std::max(at, first), *extent);
    }
  };
  std::uint32_t all = 0;
  for_each([&](PageNumber, const Extent& extent) { all += extent.stored; });
  if (all == 0) return;
  std::uint32_t after = 0;
  for_each([&](PageNumber page, const Extent& extent) {
    policy_.foresee(page, after, gap, all, room_.limit());
    after += extent.stored;
  });
}

// The first page in the store that nobody has asked for yet; `end` if there is none.
PageNumber ReadAhead::first_to_request(PageNumber from, PageNumber end) const {
  for (;;) {
    const PageRun stored = table_.next_run(from, end, PageState::kStored);
    if (stored.count == 0) return end;
    const auto asked = std::ranges::find_if(requests_, [&](const Request& one) {
      return one.run.first <= stored.first && stored.first < one.run.first + one.run.count;
    });
    if (asked == requests_.end()) return stored.first;
    from = asked->run.first + asked->run.count;
    if (from >= end) return end;
  }
}

void ReadAhead::request(const Request& wanted) {
  if (requests_.size() >= kMostRequests) {
    room_.no_longer_announced(requests_.front().run.count);
    requests_.pop_front();
  }
  requests_.push_back(wanted);
  room_.announce(wanted.run.count);
  there_.notify_one();
  if (room_.lacks_announced()) evictors_.wake();
}

void ReadAhead::need(PageNumber first, PageNumber end) {
  const std::uint64_t most = room_.limit() / 4 * 3;
  end = std::min(end, first + (most - std::min(most, needed_pages_)));
  if (first >= end) return;
  if (!needed_.empty() && needed_.back().second == first) {
    needed_.back().second = end;
  } else if (needed_.size() < kMostNeeded) {
    needed_.emplace_back(first, end);
  } else {
    return;
  }
  needed_pages_ += end - first;
  announce_needed();
}

std::uint64_t ReadAhead::needed_window() const {
  return std::clamp<std::uint64_t>(room_.limit() / kMostAhead, Streams::kFirstPages, kWindows * kExtentPages);
}

void ReadAhead::announce_needed() {
  room_.no_longer_announced(announced_for_needed_);
  announced_for_needed_ = std::min(needed_pages_, needed_window());
  room_.announce(announced_for_needed_);
  if (needed_pages_ == 0) return;
  there_.notify_one();
  if (room_.lacks_announced()) evictors_.wake();
}

// What is left of the range after this piece comes next. There is room for a piece that was announced.
ReadAhead::Request ReadAhead::begin_needed() {
  auto& [first, end] = needed_.front();
  const PageNumber stop =
      std::min<PageNumber>({(first / kExtentPages + 1) * kExtentPages, end, first + needed_window()});
  const PageRun piece{first, static_cast<std::uint32_t>(stop - first)};
  needed_pages_ -= piece.count;
  first = stop;
  if (first == end) needed_.pop_front();
  room_.announce(piece.count);
  announce_needed();
  return {.run = piece};
}

// What follows from a touch of a page that was not in view. Where sweeps come by again and again they find parts in
// memory, which nobody sees them pass: what misses behind such a part is the sweep itself, not something new.
Streams::Advice ReadAhead::notice(PageNumber page) {
  if (order_ && touched_in_order(page) && order_->is_followed()) {
    return {.sequential = true, .pages = PageOrder::kBlockPages, .around = true};
  }
  auto advice = streams_.touched(page);
  const Loops::Touched loop = loops_.touched(page, advice.sequential);
  for (PageNumber at = loop.passed; at < loop.to; at = (at / kExtentPages + 1) * kExtentPages) {
    if (table_.find(at) != nullptr) policy_.touched(at, room_.limit());  // what lay in memory was passed unseen
    const PageNumber behind = loop.way_back ? at + kBehind : at - std::min(at, kBehind);
    if (behind >= loop.first && behind < loop.end) policy_.passed(behind);
  }
  Extent& extent = table_.extent(page);
  if (!advice.sequential && loop.way != Loops::Way::kNone) {
    advice = streams_.presume(loop.way == Loops::Way::kBackward, Streams::kSweepPages * 2);
  } else if (!advice.sequential && extent.period != 0 && (1u << extent.swept_order) >= Streams::kSweepPages) {
    --extent.swept_order;  // twice in vain, and it is not presumed any more
    const bool below = page > 0 && table_.state(page - 1) == PageState::kPresent;
    const bool above = table_.state(page + 1) == PageState::kPresent;
    advice = streams_.presume(above && !below, Streams::kSweepPages * 2);
  }
  if (advice.sequential && advice.pages >= Streams::kSweepPages) {
    policy_.swept(page, room_.limit());
  } else {
    policy_.touched(page, room_.limit());
  }
  return advice;
}

PageRun ReadAhead::before_the_loops_end(PageNumber page, PageRun window, bool backward) const {
  const PageNumber first = backward ? std::max(window.first, loops_.first_of(page)) : window.first;
  const PageNumber end = backward ? window.first + window.count : loops_.end_of(page + 1, window.first + window.count);
  return {first, static_cast<std::uint32_t>(end - first)};
}

ReadAhead::Request ReadAhead::begin() {
  ++reading_;
  if (requests_.empty() && needed_pages_ != 0) return begin_needed();
  if (requests_.empty()) {
    const ExpectedOrder::Next next = order_->take_next();
    return {.run = next.run, .order = orders_, .next = next};
  }
  const Request next = requests_.front();
  requests_.pop_front();
  return next;
}

void ReadAhead::end(const Request& request, std::uint32_t pages) {
  --reading_;
  if (!order_) return;
  if (request.order == orders_) order_->brought(request.next, pages);
  note_if_given_up();
  announce_order();
}

void ReadAhead::learn(std::uint32_t pages, base::Clock::duration reading, base::Clock::duration showing) {
  const auto learn = [&](std::int64_t& usual, base::Clock::duration took) {
    const auto now = std::chrono::nanoseconds(took).count() / pages;
    usual = usual == 0 ? now : usual + (now - usual) / 8;
  };
  learn(reading_ns_, reading);
  learn(showing_ns_, showing);
}

void ReadAhead::forget_requests() {
  requests_.clear();
  needed_.clear();
  order_.reset();  // the child goes its own way
  orders_known_ = {};
  needed_pages_ = announced_for_needed_ = announced_for_order_ = 0;
  reading_ = 0;
  new (&there_) base::Condition;
}

}  // namespace farheap::pager
