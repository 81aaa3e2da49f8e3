// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pages brought in before they are touched: windows ahead of streams, and WILL_NEED hints.
#include <algorithm>
#include <chrono>

#include "pager/pager.hpp"

namespace farheap::pager {

namespace {
constexpr std::size_t kMostRequests = 64;  // older ones are no longer ahead of anything
constexpr std::uint32_t kLeastPiece = 64;  // pages, of what is read by several readers
}  // namespace

// What one stream may bring in at once: all of them together must fit into the list that stream blocks wait in, or
// they would be evicted before they are used.
std::uint64_t Pager::stream_window() const {
  const std::uint64_t share = Policy::stream_share(limit_) / 2 / std::max(streams_.active(), 1u);
  return std::clamp<std::uint64_t>(share, 16, std::uint64_t{options_.block_max_pages} * options_.readers);
}

// A stream was noticed; `from` is the next page it will touch that was not fetched at once.
void Pager::plan_read_ahead(PageNumber from, std::uint32_t pages, bool backward) {
  const std::uint64_t reach = std::min(options_.read_ahead_pages, limit_ / 8);
  if (reach < Streams::kFirstPages) return streams_.continues_at(from);
  const std::uint32_t window = static_cast<std::uint32_t>(std::min<std::uint64_t>({pages, stream_window(), reach}));
  PageRun ahead;
  if (backward) {
    if (from == 0) return;
    const PageNumber end = from;
    ahead = {end > window ? end - window : 0, static_cast<std::uint32_t>(std::min<PageNumber>(end, window))};
    learn_run(ahead.first, end);
    streams_.continues_at(end - 1);
    if (table_.next_run(ahead.first, end, PageState::kStored).count == 0) return;
  } else {
    // Pages that are in memory already are skipped, so that the stream finds the far side of them filled, too.
    const PageNumber end = std::min<PageNumber>(from + reach, table_.capacity_pages());
    learn_run(from, end);
    const PageRun stored = table_.next_run(from, end, PageState::kStored);
    streams_.continues_at(stored.count != 0 ? stored.first : from);
    if (stored.count == 0) return;
    ahead = {stored.first, static_cast<std::uint32_t>(std::min<PageNumber>(window, end - stored.first))};
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

void Pager::request(const ReadAhead& wanted) {
  if (requests_.size() >= kMostRequests) {
    announced_ -= requests_.front().run.count;
    requests_.pop_front();
  }
  requests_.push_back(wanted);
  announced_ += wanted.run.count;
  requests_there_.notify_one();
  if (resident_ + reserve_pages() + announced_ > limit_) wake_evictor();
}

void Pager::read_ahead_once(std::byte* buffer, int wait_ms) {
  Lock lock(mutex_);
  if (requests_.empty() && wait_ms > 0) {
    requests_there_.wait_for(lock, std::chrono::milliseconds(wait_ms), [&] { return !requests_.empty() && !frozen_; });
  }
  if (requests_.empty() || frozen_) return;
  const ReadAhead request = requests_.front();
  requests_.pop_front();
  announced_ -= request.run.count;
  PageNumber from = request.run.first;
  const PageNumber end = request.run.first + request.run.count;
  bool marked = !request.stream;
  learn_run(from, end);
  while (true) {
    PageRun run = table_.next_run(from, end, PageState::kStored);
    if (run.count == 0) return;
    run.count = std::min(run.count, options_.block_max_pages);
    from = run.first + run.count;
    PageRun marker{0, 0};
    if (request.backward ? request.stream && from == end : !marked) {
      marker = {request.backward ? from - 1 : run.first, 1};
      marked = true;
    }
    if (!fetch_ahead(lock, run, marker, request.stream || request.goes_on, buffer)) return;
  }
}

// False when there is no room: read-ahead never takes what a fault may need.
bool Pager::fetch_ahead(Lock& lock, PageRun run, PageRun marker, bool stream, std::byte* buffer) {
  const auto fits = [&] { return !frozen_ && resident_ + run.count + waiting_for_room_ <= limit_; };
  if (!fits()) {
    wake_evictor();
    room_.wait_for(lock, std::chrono::milliseconds(20), fits);
    if (!fits()) return false;
  }
  if (table_.run_around(run.first, PageState::kStored, run).count != run.count ||
      table_.state(run.first) != PageState::kStored) {
    return true;  // somebody was faster
  }
  const bool ghost = policy_.is_ghost(table_.tag(run.first), limit_);
  if (stream) policy_.swept(run.first, limit_);
  // Without a marker, an empty middle at the end: all of it comes into view.
  const PageRun middle = marker.count != 0 ? marker : PageRun{run.first + run.count, 0};
  const Incoming incoming = begin_incoming(run, middle, false);
  const bool hash = keep_hashes(table_.extent(run.first), false);
  if (resident_ + reserve_pages() > limit_) wake_evictor();
  lock.unlock();

  const Backing::Read read{run, buffer};
  const Status status = backing_.read({&read, 1});
  if (status) {
    show(incoming, buffer, hash);
    counters_.bytes_read.fetch_add(run.count * base::kPageBytes, std::memory_order_relaxed);
    counters_.bytes_read_ahead.fetch_add(run.count * base::kPageBytes, std::memory_order_relaxed);
    heat(run.first, base::Heat::kBytesRead, run.count * base::kPageBytes);
  }
  lock.lock();
  if (status) {
    finish_incoming(incoming, ghost, stream);
  } else {
    undo_incoming(incoming);  // a fault will read it again, and say what is wrong
  }
  return true;
}

}  // namespace farheap::pager
