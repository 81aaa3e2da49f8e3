// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pager/policy.hpp"

#include <algorithm>

namespace farheap::pager {

namespace {
// Parts of memory, counted in pages that left.
constexpr std::uint64_t kVisit = 16;       // a sweep may still be in what was seen within so much: seen again, it is
                                           // the same one
constexpr std::uint64_t kRanking = 64;     // how often extents are ranked
constexpr std::uint32_t kAsking = 64;      // an extent is watched anew after so many rankings
constexpr int kSome = 64;                  // blocks that change their list before one victim
constexpr double kFates = 256;             // so many of the latest victims count
constexpr double kLeastDies = 0.1;         // at least so many are taken for it: each generation is asked now and then
constexpr std::uint32_t kSparedPages = 8;  // smaller blocks did not come with a sweep
constexpr std::uint32_t kMuchInView = kExtentPages / 8;  // of an extent, for which it pays to watch it
}  // namespace

void BlockList::push_newest(BlockId id) {
  Block& block = table_.block(id);
  block.queue = name_;
  block.older = newest_;
  block.newer = 0;
  (newest_ != 0 ? table_.block(newest_).newer : oldest_) = id;
  newest_ = id;
  pages_ += block.pages;
}

void BlockList::push_oldest(BlockId id) {
  Block& block = table_.block(id);
  block.queue = name_;
  block.older = 0;
  block.newer = oldest_;
  (oldest_ != 0 ? table_.block(oldest_).older : newest_) = id;
  oldest_ = id;
  pages_ += block.pages;
}

void BlockList::remove(BlockId id) {
  Block& block = table_.block(id);
  (block.older != 0 ? table_.block(block.older).newer : oldest_) = block.newer;
  (block.newer != 0 ? table_.block(block.newer).older : newest_) = block.older;
  block.older = block.newer = 0;
  block.queue = Queue::kNone;
  pages_ -= block.pages;
}

void Policy::entered(BlockId id, bool ghost, bool stream) {
  if (kind_ == PolicyKind::kPeriod) list(table_.block(id).first);
  if (kind_ != PolicyKind::kS3Fifo) return main_.push_newest(id);
  if (stream) return (++stream_blocks_ % 16 == 0 ? main_ : stream_).push_newest(id);
  (ghost ? main_ : small_).push_newest(id);
}

void Policy::proven(BlockId id, Proof how) {
  Block& block = table_.block(id);
  if (how != Proof::kWatched) note_fate(block.proofs, true);
  if (kind_ == PolicyKind::kPeriod) list(block.first);
  if (kind_ != PolicyKind::kPeriod || how != Proof::kItself || block.pages >= kSparedPages) {
    block.proofs = 0;
    return main_.push_newest(id);
  }
  if (block.proofs + 1u < kGenerations) ++block.proofs;
  generation(block.proofs).push_newest(id);
}

void Policy::leave_to_order(BlockId id) {
  if (table_.block(id).queue == Queue::kPlanned) return;
  remove(id);
  planned_.push_newest(id);
}

void Policy::take_back_from_order() {
  for (int i = 0; i < kSome && planned_.oldest() != 0; ++i) {
    const BlockId id = planned_.oldest();
    planned_.remove(id);
    main_.push_newest(id);
  }
}

void Policy::note_fate(unsigned proofs, bool proven) {
  double& dies = generations_[proofs].dies;
  dies += ((proven ? 0.0 : 1.0) - dies) / kFates;
}

// Each page is as likely to be taken as its generation's victims are to be right ones, squared.
BlockId Policy::take_by_proofs() {
  double sum = 0;
  std::array<double, kGenerations> parts{};
  for (unsigned i = 0; i < kGenerations; ++i) {
    const double dies = std::max(generations_[i].dies, kLeastDies);
    parts[i] = static_cast<double>(generation(i).pages()) * dies * dies;
    sum += parts[i];
  }
  if (sum == 0) return 0;
  unsigned next = 0;
  for (unsigned i = 0; i < kGenerations; ++i) {
    generations_[i].turn = parts[i] == 0 ? 0 : generations_[i].turn + parts[i] / sum;
    if (generations_[i].turn > generations_[next].turn) next = i;
  }
  generations_[next].turn -= 1;
  if (next != 0) {
    if (const BlockId id = take_oldest(generation(next))) return id;
  }
  if (const BlockId id = take_by_clock()) return id;
  if (const BlockId id = take_oldest(warm_)) return id;
  return take_oldest(hot_);
}

void Policy::keep(BlockId id, std::uint64_t memory_pages) {
  const std::uint32_t pages = table_.block(id).pages;
  if (list_of(id) == nullptr || list_of(id) == &keep_ || keep_.pages() + pages > keep_share(memory_pages)) return;
  remove(id);
  keep_.push_newest(id);
}

void Policy::keep_no_more(BlockId id) {
  if (list_of(id) != &keep_) return;
  keep_.remove(id);
  main_.push_newest(id);
}

void Policy::keep_to_share(std::uint64_t memory_pages) {
  for (int i = 0; i < kSome && keep_.pages() > keep_share(memory_pages); ++i) keep_no_more(keep_.oldest());
}

void Policy::leaves_next(BlockId id) {
  remove(id);
  main_.push_oldest(id);
}

BlockId Policy::take_done_with() {
  const BlockId id = main_.oldest();
  if (id == 0 || !table_.block(id).leave_first || table_.block(id).busy) return 0;
  main_.remove(id);
  return id;
}

BlockId Policy::take_oldest(BlockList& list) {
  // A busy block was touched while it was being written; it cannot leave again before that is over.
  for (BlockId id = list.oldest(); id != 0; id = table_.block(id).newer) {
    if (table_.block(id).busy) continue;
    list.remove(id);
    return id;
  }
  return 0;
}

void Policy::swept(PageNumber page, std::uint64_t memory_pages) {
  if (kind_ != PolicyKind::kPeriod) return;
  Extent& extent = table_.extent(page);
  const std::uint64_t visit = memory_pages / kVisit;
  const std::uint32_t gap = left_ - extent.seen;
  if (extent.seen != 0 && gap > visit) {
    list(page);
    extent.period = gap;
  }
  extent.seen = left_;
  extent.watched = 0;
  extent.is_over = false;
}

void Policy::foresee(PageNumber page, std::uint32_t after, std::uint32_t period, std::uint32_t guess,
                     std::uint64_t memory_pages) {
  if (kind_ != PolicyKind::kPeriod) return;
  Extent& extent = table_.extent(page);
  if (period == 0) period = extent.period != 0 ? extent.period : guess;
  // By less than a visit it would look as if the sweep were here already.
  period = std::max(period, after + static_cast<std::uint32_t>(memory_pages / kVisit) + 1);
  list(page);
  extent.period = period;
  extent.seen = std::max(left_ + after - period, 1u);
  extent.watched = 0;
  extent.is_over = false;
}

void Policy::passed(PageNumber page) {
  Extent* extent = table_.find(page);
  if (extent == nullptr || extent->period == 0 || extent->is_over) return;
  extent->is_over = true;
  if (extent->present <= 1) return;
  // Not only at the next ranking: until then what the loop has ahead would leave instead.
  const Ranked ranked{distance_to(*extent), page / kExtentPages * kExtentPages};
  ranked_.insert(std::ranges::upper_bound(ranked_, ranked), ranked);
}

std::uint32_t Policy::distance_to(const Extent& extent) const {
  // An extent that nobody came to is taken to be let alone for as long again.
  if (extent.period == 0) return left_ - extent.watched_since;
  const std::uint32_t since = left_ - extent.seen;
  return since < extent.period ? extent.period - since : 0;
}

void Policy::touched(PageNumber page, std::uint64_t memory_pages) {
  Extent& extent = table_.extent(page);
  if (extent.period != 0) return swept(page, memory_pages);
  extent.watched = 0;
}

void Policy::list(PageNumber page) {
  Extent& extent = table_.extent(page);
  if (extent.listed) return;
  extent.listed = true;
  extents_.push_back(page / kExtentPages * kExtentPages);
}

// Nobody came when it was time.
bool Policy::is_over(const Extent& extent, std::uint64_t memory_pages) const {
  return left_ - extent.seen > extent.period + extent.period / 2 + memory_pages / kVisit;
}

// A page comes back into view, or is dropped, without a touch, too.
bool Policy::is_watched(Extent& extent) {
  if (extent.watched == 0) return false;
  const PageState state = extent.state[extent.watched - 1];
  if (state == PageState::kPresent || state == PageState::kFresh) extent.watched = 0;
  return extent.watched != 0;
}

void Policy::rank(std::uint64_t memory_pages) {
  const std::uint64_t visit = memory_pages / kVisit;
  ranked_at_ = left_;
  sparing_ = true;
  foreseen_pages_ /= 2;
  victim_pages_ /= 2;
  ranked_.clear();
  to_watch_.clear();
  foreseen_in_view_ = 0;
  std::vector<Ranked> silent;
  std::uint64_t periods = 0, periodic = 0;
  ++rankings_;
  std::erase_if(extents_, [&](PageNumber first) {
    Extent& extent = table_.extent(first);
    if (extent.period != 0 && is_over(extent, memory_pages)) extent.period = 0;
    if (extent.period == 0 && extent.present < kMuchInView) {
      extent.listed = false;
      extent.watched = 0;
      return true;
    }
    const std::uint32_t since = left_ - extent.seen;
    const bool was_seen_now = extent.seen != 0 && since <= visit;
    const bool is_turn = (first / kExtentPages + rankings_) % kAsking == 0;
    const bool watched = is_watched(extent);
    if (!watched && is_turn && extent.period == 0) to_watch_.push_back(first);
    if (extent.period != 0) {
      periods += extent.period;
      ++periodic;
      foreseen_in_view_ += extent.present;
      if (extent.present > 1 && (extent.is_over || !was_seen_now)) ranked_.push_back({distance_to(extent), first});
    } else if (watched) {
      silent.push_back({distance_to(extent), first});
    }
    return false;
  });
  if (ranked_.empty()) to_watch_.clear();  // nothing to choose between
  const std::uint64_t usual = periods / std::max<std::uint64_t>(periodic, 1);
  for (const Ranked& one : silent) {
    if (one.distance <= usual + usual / 2 + visit) continue;  // a sweep may still come
    foreseen_in_view_ += table_.extent(one.first).present;
    ranked_.push_back(one);
  }
  std::ranges::sort(ranked_);
}

BlockId Policy::block_in_extent(PageNumber first) const {
  const Extent* const extent = table_.find(first);
  BlockId before = 0;
  for (std::uint32_t i = 0; i < kExtentPages; ++i) {
    if (extent->state[i] != PageState::kPresent || extent->tag[i] == before) continue;
    before = extent->tag[i];
    const Block& block = table_.block(before);
    if (!block.busy && block.queue == Queue::kMain) return before;
  }
  return 0;
}

BlockId Policy::take_latest_needed() {
  // What has no period and was let alone for a while is taken to be needed after as long again: half a round of the
  // list, as its blocks are half a round old in the middle.
  const std::uint64_t others = used_pages() - std::min(foreseen_in_view_, used_pages());
  while (!ranked_.empty() && ranked_.back().distance > others / 2) {
    if (const BlockId id = block_in_extent(ranked_.back().first)) {
      main_.remove(id);
      return id;
    }
    ranked_.pop_back();
  }
  return 0;
}

// While all victims are foreseen the clock stands, and what was proven once would stay for ever. So each such page is
// asked once while memory is turned over twice.
BlockId Policy::take_proven_in_passing(std::uint64_t memory_pages) {
  if (asked_ < 2 * memory_pages) return 0;
  asked_ = 0;
  if (const BlockId id = take_oldest(warm_)) return id;
  return take_oldest(hot_);
}

BlockId Policy::take_by_period(std::uint64_t memory_pages) {
  if (left_ - ranked_at_ > memory_pages / kRanking) rank(memory_pages);
  if (const BlockId id = take_proven_in_passing(memory_pages)) return id;
  if (const BlockId id = take_to_watch()) return id;
  if (const BlockId id = take_latest_needed()) {
    asked_ += table_.block(id).pages * (warm_.pages() + hot_.pages());
    foreseen_pages_ += table_.block(id).pages;
    victim_pages_ += table_.block(id).pages;
    return id;
  }
  const BlockId id = take_by_proofs();
  if (id != 0) victim_pages_ += table_.block(id).pages;
  return id;
}

// The hand: it spares what has a period, unless everything has.
BlockId Policy::take_by_clock() {
  const std::uint64_t all = main_.pages();
  std::uint64_t spared = 0;
  while (const BlockId id = take_oldest(main_)) {
    const Block& block = table_.block(id);
    Extent& extent = table_.extent(block.first);
    sparing_ = sparing_ && spared <= all;
    if (!sparing_ || extent.period == 0 || block.pages < kSparedPages) return id;
    spared += block.pages;
    main_.push_newest(id);
    if (!is_watched(extent) && extent.present >= kMuchInView) {
      if (const BlockId part = watch(extent, id)) return part;
    }
  }
  return 0;
}

// The first page of the block as a block of its own, on no list.
BlockId Policy::watch(Extent& extent, BlockId id) {
  const Block& block = table_.block(id);
  const PageRun run = table_.next_run(block.first, block.first + block.count, PageState::kPresent, id);
  if (run.count == 0) return 0;
  extent.watched = static_cast<std::uint16_t>(run.first % kExtentPages + 1);
  extent.watched_since = left_;
  if (block.pages > 1) return split_page(id, run.first);
  main_.remove(id);
  return id;
}

bool Policy::watches(BlockId id) const {
  const Block& block = table_.block(id);
  if (block.pages != 1 || block.leave_first) return false;
  const Extent* const extent = table_.find(block.first);
  return extent->watched != 0 && extent->tag[extent->watched - 1] == id && extent->present >= kMuchInView;
}

BlockId Policy::take_to_watch() {
  while (!to_watch_.empty()) {
    const PageNumber first = to_watch_.back();
    to_watch_.pop_back();
    Extent& extent = table_.extent(first);
    if (is_watched(extent) || extent.present < kMuchInView) continue;
    const BlockId id = block_in_extent(first);
    if (id == 0) continue;
    if (const BlockId part = watch(extent, id)) return part;
  }
  return 0;
}

BlockId Policy::split_page(BlockId id, PageNumber page) {
  const BlockId part = table_.new_block(page, 1);
  Block& block = table_.block(id);
  table_.block(part).known = block.known.part(static_cast<std::uint32_t>(page - block.first), 1);
  table_.tag(page) = part;
  --block.pages;
  shrink(id, 1);
  return part;
}

BlockId Policy::take_victim(std::uint64_t memory_pages) {
  if (const BlockId id = take_usual_victim(memory_pages)) return id;
  if (const BlockId id = take_oldest(keep_)) return id;
  return take_oldest(refused_);
}

BlockId Policy::take_usual_victim(std::uint64_t memory_pages) {
  if (kind_ == PolicyKind::kPeriod) return take_by_period(memory_pages);
  if (stream_.pages() > stream_share(memory_pages) && ++victims_ % 16 != 0) {
    if (const BlockId id = take_oldest(stream_)) return id;
  }
  BlockList& first = small_.pages() > memory_pages / 10 ? small_ : main_;
  BlockList& second = &first == &small_ ? main_ : small_;
  if (const BlockId id = take_oldest(first)) return id;
  if (const BlockId id = take_oldest(second)) return id;
  return take_oldest(stream_);
}

BlockList* Policy::list_of(BlockId id) {
  switch (table_.block(id).queue) {
    case Queue::kMain: return &main_;
    case Queue::kSmallOrWarm: return kind_ == PolicyKind::kS3Fifo ? &small_ : &warm_;
    case Queue::kStreamOrHot: return kind_ == PolicyKind::kS3Fifo ? &stream_ : &hot_;
    case Queue::kKeep: return &keep_;
    case Queue::kRefused: return &refused_;
    case Queue::kPlanned: return &planned_;
    default: return nullptr;
  }
}

void Policy::remove(BlockId id) {
  if (BlockList* list = list_of(id)) list->remove(id);
}

void Policy::shrink(BlockId id, std::uint32_t pages) {
  if (BlockList* list = list_of(id)) list->shrink(pages);
}

}  // namespace farheap::pager
