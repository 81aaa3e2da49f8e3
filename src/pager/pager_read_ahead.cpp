// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages brought in before they are touched: windows ahead of streams, and WILL_NEED hints.
#include <algorithm>
#include <chrono>

#include "pager/pager.hpp"

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
}  // namespace

// What one stream may bring in at once: all of them together must fit into the list that stream blocks wait in, or
// they would be evicted before they are used.
std::uint64_t Pager::stream_window() const {
  const std::uint64_t share = Policy::stream_share(room_.limit()) / 2 / std::max(streams_.active(), 1u);
  return std::clamp<std::uint64_t>(share, 16, std::uint64_t{options_.block_max_pages} * options_.readers);
}

// A stream was noticed; `from` is the next page it will touch that was not fetched at once.
void Pager::plan_read_ahead(PageNumber from, std::uint32_t pages, bool backward) {
  const std::uint64_t reach = std::min(options_.read_ahead_pages, room_.limit() / kMostAhead);
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

// A loop will come by: what it begins with is on its way before it is touched, and what leaves meanwhile is what it
// needs last.
void Pager::loop_begins(PageNumber first, PageNumber end, bool backward) {
  std::uint32_t gap = 0;
  const bool is_new = loops_.begin(first, end, backward, policy_.left(), room_.limit() / kMostAhead, gap);
  if (is_new) foresee_loop(first, end, backward, gap);

  const std::uint64_t reach = std::min({options_.read_ahead_pages, room_.limit() / kMostAhead, end - first});
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
    plan_read_ahead(from, options_.block_max_pages, backward);
  }
}

// Where the loop comes, and when, counted in pages that leave: as many as it brings in before. `gap`: how many left
// since it came the last time.
void Pager::foresee_loop(PageNumber first, PageNumber end, bool backward, std::uint32_t gap) {
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
    mutex_.assume_held();
    policy_.foresee(page, after, gap, all, room_.limit());
    after += extent.stored;
  });
}

// The first page in the store that nobody has asked for yet; `end` if there is none.
PageNumber Pager::first_to_request(PageNumber from, PageNumber end) const {
  for (;;) {
    const PageRun stored = table_.next_run(from, end, PageState::kStored);
    if (stored.count == 0) return end;
    const auto asked = std::ranges::find_if(requests_, [&](const ReadAhead& one) {
      return one.run.first <= stored.first && stored.first < one.run.first + one.run.count;
    });
    if (asked == requests_.end()) return stored.first;
    from = asked->run.first + asked->run.count;
    if (from >= end) return end;
  }
}

void Pager::request(const ReadAhead& wanted) {
  if (requests_.size() >= kMostRequests) {
    room_.no_longer_announced(requests_.front().run.count);
    requests_.pop_front();
  }
  requests_.push_back(wanted);
  room_.announce(wanted.run.count);
  requests_there_.notify_one();
  if (room_.lacks_announced()) evictor_.wake();
}

std::uint32_t Pager::read_ahead_once(std::byte* buffer, int wait_ms) {
  Lock lock(mutex_);
  const auto is_wanted = [&]() FARHEAP_REQUIRES(mutex_) {
    return !requests_.empty() && !moving_.is_frozen() && reading_ < useful_readers();
  };
  if (wait_ms > 0) requests_there_.wait_for(mutex_, std::chrono::milliseconds(wait_ms), is_wanted);
  if (!is_wanted()) return 0;
  ++reading_;
  const std::uint32_t used = carry_out_next(buffer);
  --reading_;
  return used;
}

std::uint32_t Pager::carry_out_next(std::byte* buffer) {
  const ReadAhead request = requests_.front();
  requests_.pop_front();
  PageNumber from = request.run.first;
  const PageNumber end = request.run.first + request.run.count;
  PageNumber announced_from = from;
  const auto announced_no_longer = [&](PageNumber until) FARHEAP_REQUIRES(mutex_) {
    if (until <= announced_from) return;
    room_.no_longer_announced(until - announced_from);
    announced_from = until;
  };
  // A window of a stream fits into what the evictor keeps free. What a hint asks for need not: it stays announced until
  // it is there, or in full memory there would never be room for it.
  if (request.stream || request.goes_on) announced_no_longer(end);
  bool marked = !request.stream;
  earlier_.learn_run(from, end);
  for (std::uint32_t used = 0;;) {
    PageRun run = table_.next_run(from, end, PageState::kStored);
    if (run.count == 0) {
      announced_no_longer(end);
      return used;
    }
    run.count = std::min(run.count, options_.block_max_pages);
    from = run.first + run.count;
    PageRun marker{0, 0};
    if (request.backward ? request.stream && from == end : !marked) {
      marker = {request.backward ? from - 1 : run.first, 1};
      marked = true;
    }
    if (!fetch_ahead(run, marker, request.stream || request.goes_on, buffer)) {
      announced_no_longer(end);
      return used;
    }
    used = std::max(used, run.count);
    announced_no_longer(from);
  }
}

// False when there is no room: read-ahead never takes what a fault may need.
bool Pager::fetch_ahead(PageRun run, PageRun marker, bool stream, std::byte* buffer) {
  const auto fits = [&]() FARHEAP_REQUIRES(mutex_) {
    return !moving_.is_frozen() && !room_.lacks(run.count + room_.waiting());
  };
  if (!fits()) {
    evictor_.wake();
    freed_.wait_for(mutex_, std::chrono::milliseconds(20), fits);
    if (!fits()) return false;
  }
  if (table_.run_around(run.first, PageState::kStored, run).count != run.count ||
      table_.state(run.first) != PageState::kStored) {
    return true;  // somebody was faster
  }
  const bool ghost = policy_.is_ghost(table_.tag(run.first), room_.limit());
  if (stream) policy_.swept(run.first, room_.limit());
  Incoming incoming;
  if (marker.count == 0) {
    incoming.add(run, Incoming::As::kAskedFor);
  } else {
    incoming.add_around(run, marker, Incoming::As::kMarker, Incoming::As::kAskedFor);
  }
  const Backing::Rest rest = backing_.where(run);
  begin_incoming(incoming);
  const bool hash = rest.stays && keep_hashes(table_.extent(run.first), false);
  if (room_.lacks_reserve()) evictor_.wake();
  mutex_.unlock();

  const auto since = Clock::now();
  const Backing::Read read{run, buffer};
  const Status status = backing_.read({&read, 1});
  const auto read_at = Clock::now();
  if (status) {
    show(incoming, buffer, hash);
    const std::uint64_t bytes = (run.count - rest.in_memory) * base::kPageBytes;
    counters_.bytes_read.fetch_add(bytes, std::memory_order_relaxed);
    counters_.bytes_read_ahead.fetch_add(bytes, std::memory_order_relaxed);
    heat(run.first, base::Heat::kBytesRead, bytes);
  }
  const auto shown_at = Clock::now();
  mutex_.lock();
  if (status) {
    const auto learn = [&](std::int64_t& usual, Clock::duration took) {
      const auto now = std::chrono::nanoseconds(took).count() / run.count;
      usual = usual == 0 ? now : usual + (now - usual) / 8;
    };
    learn(reading_ns_, read_at - since);
    learn(showing_ns_, shown_at - read_at);
    finish_incoming(incoming, ghost, stream);
  } else {
    undo_incoming(incoming);  // a fault will read it again, and say what is wrong
  }
  return true;
}

}  // namespace farheap::pager
