// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages brought in before they are touched: what ReadAhead asks for.
#include <algorithm>
#include <chrono>

#include "pager/pager.hpp"

namespace farheap::pager {

std::uint32_t Pager::read_ahead_once(std::byte* buffer, int wait_ms) {
  Lock lock(mutex_);
  const auto is_wanted = [&]() FARHEAP_REQUIRES(mutex_) { return read_ahead_.has_work() && !moving_.is_frozen(); };
  if (wait_ms > 0) read_ahead_.wait(mutex_, std::chrono::milliseconds(wait_ms), is_wanted);
  if (!is_wanted()) return 0;
  const ReadAhead::Request request = read_ahead_.begin();
  const CarriedOut done = carry_out(request, buffer);
  read_ahead_.end(request, done.came);
  return done.used;
}

Pager::CarriedOut Pager::carry_out(const ReadAhead::Request& request, std::byte* buffer) {
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
  if (request.order != 0) announced_from = end;  // it announces for itself
  bool marked = !request.stream;
  earlier_.learn_run(from, end);
  for (CarriedOut done;;) {
    PageRun run = table_.next_run(from, end, PageState::kStored);
    if (run.count == 0) {
      announced_no_longer(end);
      return done;
    }
    run.count = std::min(run.count, options_.block_max_pages);
    from = run.first + run.count;
    PageRun marker{0, 0};
    if (request.backward ? request.stream && from == end : !marked) {
      marker = {request.backward ? from - 1 : run.first, 1};
      marked = true;
    }
    const PageRun& wanted = request.next.marker;
    if (wanted.count != 0 && run.first <= wanted.first && wanted.first < from) marker = wanted;
    const Fetched fetched = fetch_ahead(run, marker, request.stream || request.goes_on, buffer);
    if (fetched == Fetched::kNoRoom) {
      announced_no_longer(end);
      return done;
    }
    done.used = std::max(done.used, run.count);
    if (fetched == Fetched::kCame) done.came += run.count;
    announced_no_longer(from);
  }
}

// Read-ahead never takes what a fault may need.
Pager::Fetched Pager::fetch_ahead(PageRun run, PageRun marker, bool stream, std::byte* buffer) {
  const auto fits = [&]() FARHEAP_REQUIRES(mutex_) {
    return !moving_.is_frozen() && !room_.lacks(run.count + room_.waiting());
  };
  if (!fits()) {
    evictors_.wake();
    if (options_.room_patience.count() > 0) freed_.wait_for(mutex_, options_.room_patience, fits);
    if (!fits()) return Fetched::kNoRoom;
  }
  if (table_.run_around(run.first, PageState::kStored, run).count != run.count ||
      table_.state(run.first) != PageState::kStored) {
    return Fetched::kNothing;  // somebody was faster
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
  read_ahead_.reads(run.first, run.count - rest.in_memory);
  begin_incoming(incoming);
  const bool hash = rest.stays && keep_hashes(table_.extent(run.first), false);
  if (room_.lacks_reserve()) evictors_.wake();
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
    read_ahead_.learn(run.count, read_at - since, shown_at - read_at);
    finish_incoming(incoming, ghost, stream);
  } else {
    undo_incoming(incoming);  // a fault will read it again, and say what is wrong
  }
  return status ? Fetched::kCame : Fetched::kNothing;
}

}  // namespace farheap::pager
